/* Serves the plainest requests as `Dispatcher.serve` does, only quicker: a Produce of one batch (`_produce.h`), whoever
 * waits for its records (`_newest.h`), and a Fetch that has to wait for more (`_park.h`).
 *
 * Z1  What it does is what `Dispatcher.serve` would do. A request that is not of these forms is left to it, before
 *     anything has changed.
 * Z2  A request that breaks costs its client the connection, and nobody else notices.
 */
#include "_park.h"
#include "_produce.h"

/* Read the header; 0 when the request is not one for us, -1 with an error set. */
static int read_header(const Lane *lane, uint8_t *at, uint8_t *end, Request *request)
{
    if (end - at < 11)
        return 0;
    request->key = read_16(at);
    request->version = read_16(at + 2);
    request->correlation_id = read_32(at + 4);
    int16_t length = read_16(at + 8);
    at += 10;
    if (!(request->key == PRODUCE && request->version >= PRODUCE_SINCE)
        && !(request->key == FETCH && request->version >= FETCH_SINCE))
        return 0;
    if (length > 0) {
        PyObject *session = AT(request->connection, connection_session);
        PyObject *client = session != NULL && Py_IS_TYPE(session, SessionType) ? AT(session, session_client) : NULL;
        if (end - at <= length || client == NULL || !PyByteArray_CheckExact(client)
            || PyByteArray_GET_SIZE(client) != length || memcmp(PyByteArray_AS_STRING(client), at, length) != 0)
            return 0;
        at += length;
    }
    if (*at++ != 0) /* tags */
        return 0;
    request->at = at;
    request->end = end;
    PyObject *key = PyLong_FromLong((long)request->key << 16 | request->version);
    if (key == NULL)
        return -1;
    request->route = PyDict_GetItemWithError(lane->routes, key);
    Py_DECREF(key);
    if (request->route == NULL)
        return PyErr_Occurred() ? -1 : 0;
    return Py_IS_TYPE(request->route, RouteType);
}

/* Say to the dispatcher what went wrong. */
static PyObject *fail(const Lane *lane, const Request *request)
{
    PyObject *type, *error, *trace;
    PyErr_Fetch(&type, &error, &trace);
    PyErr_NormalizeException(&type, &error, &trace);
    PyObject *done =
        PyObject_CallMethodObjArgs(lane->dispatcher, name_failed, request->connection, request->route, error, NULL);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return done;
}

static PyObject *serve(PyObject *self, PyObject *const *args, size_t flags, PyObject *names)
{
    const Lane *lane = (Lane *)self;
    if (PyVectorcall_NARGS(flags) != 4 || names != NULL)
        return PyErr_Format(PyExc_TypeError, "a lane serves a connection: buffer, position and end");
    PyObject *buffer = args[1];
    Request request = {.connection = args[0]};
    if (monotonic(lane, &request.began) < 0)
        return NULL;
    int64_t position, end;
    int ours = PyObject_TypeCheck(args[0], ConnectionType) && PyByteArray_CheckExact(buffer)
               && whole(args[2], &position) && whole(args[3], &end) && 0 <= position && position <= end
               && end <= PyByteArray_GET_SIZE(buffer);
    if (ours) {
        uint8_t *bytes = (uint8_t *)PyByteArray_AS_STRING(buffer);
        ours = read_header(lane, bytes + position, bytes + end, &request);
    }
    if (ours < 0)
        return NULL;
    Served served = NOT_OURS;
    if (ours) {
        Py_INCREF(request.route);
        served = request.key == PRODUCE ? serve_produce(lane, &request) : serve_fetch(lane, &request);
        PyObject *failed = served == BROKEN ? fail(lane, &request) : Py_NewRef(Py_None);
        Py_DECREF(request.route);
        if (failed == NULL || served != NOT_OURS)
            return failed;
        Py_DECREF(failed);
    }
    return PyObject_Vectorcall(lane->general, args, 4, NULL);
}

/* Life */

/* What a lane is made of, by the names of its arguments. */
static const struct {
    const char *name;
    size_t at;
} PARTS[] = {
    {"general", offsetof(Lane, general)}, {"dispatcher", offsetof(Lane, dispatcher)}, {"routes", offsetof(Lane, routes)},
    {"broker", offsetof(Lane, broker)}, {"connections", offsetof(Lane, connections)},
    {"call_later", offsetof(Lane, call_later)}, {"by_name", offsetof(Lane, by_name)}, {"by_id", offsetof(Lane, by_id)},
    {"sessions", offsetof(Lane, sessions)},    {"internal", offsetof(Lane, internal)}, {"durable", offsetof(Lane, durable)},
    {"clock", offsetof(Lane, clock)}, {NULL},
};

#define PART(lane, i) (*(PyObject **)((char *)(lane) + PARTS[i].at))

static PyObject *make(PyTypeObject *type, PyObject *args, PyObject *parts)
{
    PyObject *fetch_bytes_max = parts == NULL ? NULL : PyDict_GetItemString(parts, "fetch_bytes_max");
    Lane *self = (Lane *)type->tp_alloc(type, 0);
    if (self == NULL)
        return NULL;
    self->call = serve;
    for (int i = 0; PARTS[i].name != NULL; i++) {
        PyObject *part = parts == NULL ? NULL : PyDict_GetItemString(parts, PARTS[i].name);
        if (part == NULL) {
            Py_DECREF(self);
            return PyErr_Format(PyExc_TypeError, "a lane needs %s", PARTS[i].name);
        }
        PART(self, i) = Py_NewRef(part);
    }
    if (!PyDict_CheckExact(self->routes) || !PyDict_CheckExact(self->sessions) || !PyDict_CheckExact(self->by_name) || !PyDict_CheckExact(self->by_id)
        || !Py_IS_TYPE(self->connections, ConnectionsType) || !PyAnySet_Check(self->internal)
        || !whole(fetch_bytes_max, &self->fetch_bytes_max)) {
        Py_DECREF(self);
        return PyErr_Format(PyExc_TypeError, "a lane is made of other things");
    }
    self->is_real = Py_IS_TYPE(self->clock, RealClockType);
    return (PyObject *)self;
}

static int traverse(PyObject *self, visitproc visit, void *arg)
{
    for (int i = 0; PARTS[i].name != NULL; i++)
        Py_VISIT(PART(self, i));
    return 0;
}

static int clear(PyObject *self)
{
    for (int i = 0; PARTS[i].name != NULL; i++)
        Py_CLEAR(PART(self, i));
    return 0;
}

static void destroy(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    clear(self);
    Py_TYPE(self)->tp_free(self);
}

static PyTypeObject LaneType = {
    PyVarObject_HEAD_INIT(NULL, 0)
    .tp_name = "ottla.broker._lane.Lane",
    .tp_doc = "Serves frames like Dispatcher.serve, to which it leaves all but the plainest.",
    .tp_basicsize = sizeof(Lane),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_HAVE_GC,
    .tp_vectorcall_offset = offsetof(Lane, call),
    .tp_call = PyVectorcall_Call,
    .tp_new = make,
    .tp_traverse = traverse,
    .tp_clear = clear,
    .tp_dealloc = destroy,
};

static PyObject *learn(PyObject *module, PyObject *classes)
{
    if (!PyDict_CheckExact(classes))
        return PyErr_Format(PyExc_TypeError, "learn takes classes by their names");
    if (learn_slots(classes, CLASSES, SLOTS) < 0
        || learn_number(classes, "OPEN_REQUESTS_MAX", &open_requests_max) < 0
        || learn_number(classes, "BUCKETS", &buckets_count) < 0)
        return NULL;
    append_plain = (PlainAppend)PyCapsule_Import(PLAIN_CAPSULE, 0);
    send_part = append_plain == NULL ? NULL : (FramesSend)PyCapsule_Import(FRAMES_CAPSULE, 0);
    if (send_part == NULL)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *served_here(PyObject *module, PyObject *nothing)
{
    return Py_BuildValue("(LLL)", (long long)produces_served, (long long)fetches_parked, (long long)readers_answered);
}

static PyMethodDef functions[] = {
    {"served", served_here, METH_NOARGS, "served(): how many produces, parked fetches and woken readers were served here."},
    {"learn", learn, METH_O, "learn(known): learn where everything is, and how much is much."},
    {NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ottla.broker._lane", "Serves plain requests, quicker than Python could.", -1, functions,
};

static const struct {
    PyObject **name;
    const char *text;
} NAMES[] = {
    {&name_wake, "wake"}, {&name_report_bug, "report_bug"}, {&name_appended, "appended"}, {&name_flush, "flush"}, {&name_settle_due, "settle_due"},
    {&name_reply, "reply"}, {&name_attach, "attach"}, {&name_cancel, "cancel"}, {&name_popleft, "popleft"},
    {&name_append, "append"}, {&name_failed, "failed"}, {&name_finish, "finish"},
    {&name_monotonic, "monotonic"}, {&name_now_ms, "now_ms"}, {&no_text, ""}, {NULL},
};

PyMODINIT_FUNC PyInit__lane(void)
{
    for (int i = 0; NAMES[i].name != NULL; i++)
        if ((*NAMES[i].name = PyUnicode_InternFromString(NAMES[i].text)) == NULL)
            return NULL;
    minus_one = PyLong_FromLong(-1);
    any_watermark = PyLong_FromLongLong(INT64_MAX);
    PyObject *made = minus_one == NULL || any_watermark == NULL ? NULL : PyModule_Create(&module);
    if (made != NULL && PyModule_AddType(made, &LaneType) < 0)
        Py_CLEAR(made);
    return made;
}
