/* Reads and writes for a connection as `Connection` does, only quicker.
 *
 * F1  What it does is what the methods of the same names would do. A frame that has not arrived wholly, a connection
 *     that is closed over its size, an answer of several parts: those are left to them.
 */
#include "../wire/_slots.h"
#include "_frames.h"

#include <errno.h>
#include <sys/socket.h>

#define SIZE_BYTES 4

static int64_t frames_a_turn, turn_cost_max, loop_cost_max, light_cost_max, light; /* of `connection.py` and `connections.py` */

static PyTypeObject *ConnectionType, *ConnectionsType, *ReceiveType, *PusherType;
static PyObject *general, *name_get_buffer, *name_buffer_updated, *name_close, *name_put_off, *name_turn_over, *name_settle_due,
    *name_send, *name_is_closing, *name_held;

static Py_ssize_t connection_connections, connection_receive, connection_frame, connection_closed, connection_touched,
    connection_corked, connection_serve, connection_stalled, connection_backlog, connection_push, connection_transport,
    connections_due, connections_at_end, connections_limit, connections_tick, connections_turn_cost, connections_loop_cost, connections_crowded, connection_queue, connection_rank,
    receive_data, receive_view,
    pusher_descriptor;

static const Class CLASSES[] = {
    {"Connection", &ConnectionType}, {"Connections", &ConnectionsType}, {"ReceiveBuffer", &ReceiveType},
    {"Pusher", &PusherType}, {NULL},
};

static const Slot SLOTS[] = {
    {"Connection", "connections", &connection_connections}, {"Connection", "_receive", &connection_receive},
    {"Connection", "_frame", &connection_frame}, {"Connection", "closed", &connection_closed},
    {"Connection", "touched", &connection_touched}, {"Connection", "_corked", &connection_corked},
    {"Connection", "_serve", &connection_serve}, {"Connection", "_stalled", &connection_stalled},
    {"Connection", "backlog", &connection_backlog}, {"Connection", "_push", &connection_push},
    {"Connection", "transport", &connection_transport}, {"Connections", "due", &connections_due},
    {"Connections", "at_end", &connections_at_end}, {"Connections", "frame_bytes_max", &connections_limit},
    {"Connections", "turn_cost", &connections_turn_cost}, {"Connection", "_queue", &connection_queue}, {"Connections", "crowded", &connections_crowded}, {"Connections", "loop_cost", &connections_loop_cost},
    {"Connection", "rank", &connection_rank},
    {"Connections", "tick", &connections_tick}, {"ReceiveBuffer", "data", &receive_data},
    {"ReceiveBuffer", "view", &receive_view}, {"Pusher", "descriptor", &pusher_descriptor}, {NULL},
};

/* Sending */

static int call(PyObject *object, PyObject *name)
{
    PyObject *done = PyObject_CallMethodNoArgs(object, name);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int send_in_python(PyObject *connection, PyObject *part)
{
    PyObject *parts = PyList_New(1);
    if (parts == NULL)
        return -1;
    PyList_SET_ITEM(parts, 0, Py_NewRef(part));
    PyObject *done = PyObject_CallMethodOneArg(connection, name_send, parts);
    Py_DECREF(parts);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Have what the kernel did not take wait until it does. */
static int send_rest(PyObject *connection, PyObject *part, Py_ssize_t sent)
{
    PyObject *view = PyMemoryView_FromObject(part);
    PyObject *rest = view == NULL ? NULL : PySequence_GetSlice(view, sent, PY_SSIZE_T_MAX);
    int failed = rest == NULL ? -1 : send_in_python(connection, rest);
    Py_XDECREF(view);
    Py_XDECREF(rest);
    return failed;
}

static int send_part(PyObject *connection, PyObject *part)
{
    PyObject *transport = AT(connection, connection_transport), *push = AT(connection, connection_push);
    int64_t descriptor, waiting;
    if (!PyBytes_CheckExact(part) || push == NULL || !Py_IS_TYPE(push, PusherType)
        || AT(connection, connection_queue) != Py_None
        || !whole(AT(push, pusher_descriptor), &descriptor))
        return send_in_python(connection, part);
    PyObject *closing = PyObject_CallMethodNoArgs(transport, name_is_closing);
    if (closing == NULL)
        return -1;
    Py_DECREF(closing);
    if (closing == Py_True)
        return 0;
    PyObject *held = PyObject_CallMethodNoArgs(transport, name_held);
    if (held == NULL)
        return -1;
    int fits = whole(held, &waiting);
    Py_DECREF(held);
    if (!fits || waiting)
        return send_in_python(connection, part);
    ssize_t sent = send((int)descriptor, PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent == PyBytes_GET_SIZE(part))
        return 0;
    return send_rest(connection, part, sent < 0 ? 0 : sent); /* full, or broken: the transport finds out which */
}

/* Reading */

static PyObject *get_buffer(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    if (count < 1 || !PyObject_TypeCheck(args[0], ConnectionType))
        return PyErr_Format(PyExc_TypeError, "get_buffer is a method of a connection");
    if (AT(args[0], connection_frame) == Py_None)
        return Py_NewRef(AT(AT(args[0], connection_receive), receive_view));
    return PyObject_CallMethodObjArgs(general, name_get_buffer, args[0], args[count - 1], NULL);
}

static int keep_tail(PyObject *connection, PyObject *buffer, Py_ssize_t position, Py_ssize_t end)
{
    PyObject *done = PyObject_CallMethod(connection, "_keep_tail", "Onn", buffer, position, end);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int keep_backlog(PyObject *connection, PyObject *buffer, Py_ssize_t position, Py_ssize_t end)
{
    return put(connection, connection_backlog,
               PyByteArray_FromStringAndSize(PyByteArray_AS_STRING(buffer) + position, end - position));
}

static int serve(PyObject *connection, PyObject *buffer, Py_ssize_t position, Py_ssize_t stop)
{
    PyObject *args[4] = {connection, buffer, PyLong_FromSsize_t(position), PyLong_FromSsize_t(stop)};
    PyObject *done = NULL;
    if (args[2] != NULL && args[3] != NULL)
        done = PyObject_Vectorcall(AT(connection, connection_serve), args, 4, NULL);
    Py_XDECREF(args[2]);
    Py_XDECREF(args[3]);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

/* Serve the frames that are here wholly. */
static int serve_frames(PyObject *connection, PyObject *connections, PyObject *buffer, Py_ssize_t end)
{
    const uint8_t *bytes = (const uint8_t *)PyByteArray_AS_STRING(buffer);
    Py_ssize_t position = 0;
    int64_t turn = frames_a_turn, limit, made;
    if (!whole(AT(connections, connections_limit), &limit)) {
        PyErr_SetString(PyExc_TypeError, "frame_bytes_max is no number");
        return -1;
    }
    while (position < end) {
        if (end - position < SIZE_BYTES)
            return keep_tail(connection, buffer, position, end);
        int64_t size = read_32(bytes + position);
        if (size < 0 || size > limit)
            return call(connection, name_close);
        if (size > end - position - SIZE_BYTES)
            return keep_tail(connection, buffer, position, end);
        Py_ssize_t stop = position + SIZE_BYTES + size;
        if (put(connections, connections_at_end, PyBool_FromLong(stop == end)) < 0
            || serve(connection, buffer, position + SIZE_BYTES, stop) < 0)
            return -1;
        position = stop;
        if (AT(connection, connection_stalled) == Py_True)
            return keep_backlog(connection, buffer, position, end);
        if (AT(connection, connection_closed) == Py_True)
            return 0;
        if (!whole(AT(connections, connections_turn_cost), &made))
            made = 0;
        if ((!--turn || made > turn_cost_max) && position < end)
            return keep_backlog(connection, buffer, position, end) < 0 ? -1 : call(connection, name_put_off);
    }
    return 0;
}

/* Send what was corked while frames were served. */
static int uncork(PyObject *connection)
{
    PyObject *corked = AT(connection, connection_corked);
    AT(connection, connection_corked) = Py_NewRef(Py_None);
    int failed = 0;
    if (corked == NULL || !PyList_CheckExact(corked) || PyList_GET_SIZE(corked) == 0)
        ;
    else if (PyList_GET_SIZE(corked) == 1)
        failed = send_part(connection, PyList_GET_ITEM(corked, 0));
    else {
        PyObject *done = PyObject_CallMethodOneArg(connection, name_send, corked);
        Py_XDECREF(done);
        failed = done == NULL ? -1 : 0;
    }
    Py_XDECREF(corked);
    return failed;
}

/* `Connections.turn_over`, and what stands in its place after a turn that has cost nothing. */
static int turn_over(PyObject *connection, PyObject *connections)
{
    int64_t cost, sum;
    if (whole(AT(connections, connections_turn_cost), &cost) && cost <= light_cost_max
        && whole(AT(connections, connections_loop_cost), &sum) && sum + cost <= loop_cost_max)
        return put_whole(connection, connection_rank, light) < 0
                       || (cost && put_whole(connections, connections_loop_cost, sum + cost) < 0)
                   ? -1
                   : 0;
    PyObject *done = PyObject_CallMethodOneArg(connections, name_turn_over, connection);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

static int take(PyObject *connection, PyObject *buffer, Py_ssize_t end)
{
    PyObject *connections = AT(connection, connection_connections);
    PyObject *outer = Py_NewRef(AT(connections, connections_due));
    int outermost = AT(connection, connection_corked) == Py_None;
    if ((outer == Py_None && put_whole(connections, connections_turn_cost, 0) < 0)
        || put(connections, connections_due, PyList_New(0)) < 0
        || (outermost && put(connection, connection_corked, PyList_New(0)) < 0)
        || serve_frames(connection, connections, buffer, end) < 0) {
        put(connections, connections_due, outer);
        return -1;
    }
    PyObject *due = AT(connections, connections_due);
    int failed = due != Py_None && PyObject_Size(due) > 0 ? call(connections, name_settle_due) : 0;
    if (outer == Py_None && failed == 0)
        failed = turn_over(connection, connections);
    put(connections, connections_due, outer);
    return failed < 0 || (outermost && uncork(connection) < 0) ? -1 : 0;
}

static PyObject *buffer_updated(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    Py_ssize_t size;
    if (count != 2 || !PyObject_TypeCheck(args[0], ConnectionType)
        || ((size = PyLong_AsSsize_t(args[1])) == -1 && PyErr_Occurred()))
        return PyErr_Format(PyExc_TypeError, "buffer_updated is a method of a connection and takes a size");
    PyObject *connection = args[0], *connections = AT(connection, connection_connections);
    if (AT(connection, connection_closed) == Py_True)
        Py_RETURN_NONE;
    PyObject *buffer = AT(AT(connection, connection_receive), receive_data);
    if (AT(connection, connection_frame) != Py_None || AT(connections, connections_crowded) != Py_False
        || !PyByteArray_CheckExact(buffer) || size < 0
        || size > PyByteArray_GET_SIZE(buffer))
        return PyObject_CallMethodObjArgs(general, name_buffer_updated, connection, args[1], NULL);
    put(connection, connection_touched, Py_NewRef(AT(connections, connections_tick)));
    Py_INCREF(connection);
    Py_INCREF(buffer);
    int failed = take(connection, buffer, size);
    Py_DECREF(buffer);
    Py_DECREF(connection);
    if (failed)
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *learn(PyObject *module, PyObject *classes)
{
    if (!PyDict_CheckExact(classes) || learn_slots(classes, CLASSES, SLOTS) < 0
        || learn_number(classes, "FRAMES_A_TURN", &frames_a_turn) < 0
        || learn_number(classes, "TURN_COST_MAX", &turn_cost_max) < 0
        || learn_number(classes, "LOOP_COST_MAX", &loop_cost_max) < 0 || learn_number(classes, "LIGHT", &light) < 0
        || learn_number(classes, "LIGHT_COST_MAX", &light_cost_max) < 0)
        return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_TypeError, "learn takes classes by their names");
    Py_XSETREF(general, Py_NewRef((PyObject *)ConnectionType));
    Py_RETURN_NONE;
}

static PyMethodDef learn_function = {"learn", learn, METH_O, "learn(known): learn where everything is, and how much is much."};
static PyMethodDef methods[] = {
    {"get_buffer", (PyCFunction)(void (*)(void))get_buffer, METH_FASTCALL, "Say where the next bytes go."},
    {"buffer_updated", (PyCFunction)(void (*)(void))buffer_updated, METH_FASTCALL,
     "Serve every whole frame that has arrived."},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "ottla.channel._frames", "Reads frames, quicker than Python could.", -1, NULL,
};

/* A function that becomes a method of the class it is put into. */
static int add_method(PyObject *made, PyMethodDef *method)
{
    PyObject *function = PyCFunction_New(method, NULL);
    PyObject *bound = function == NULL ? NULL : PyInstanceMethod_New(function);
    Py_XDECREF(function);
    return bound == NULL ? -1 : PyModule_AddObject(made, method->ml_name, bound);
}

static const struct {
    PyObject **name;
    const char *text;
} NAMES[] = {
    {&name_get_buffer, "get_buffer"}, {&name_buffer_updated, "buffer_updated"}, {&name_close, "close"}, {&name_put_off, "_put_off"},
    {&name_turn_over, "turn_over"}, {&name_settle_due, "settle_due"}, {&name_send, "_send"},
    {&name_is_closing, "is_closing"}, {&name_held, "get_write_buffer_size"}, {NULL},
};

PyMODINIT_FUNC PyInit__frames(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made == NULL)
        return NULL;
    for (int i = 0; NAMES[i].name != NULL; i++)
        if ((*NAMES[i].name = PyUnicode_InternFromString(NAMES[i].text)) == NULL)
            goto failed;
    PyObject *function = PyCFunction_New(&learn_function, NULL), *capsule;
    if (function == NULL || PyModule_AddObject(made, "learn", function) < 0 || add_method(made, &methods[0]) < 0
        || add_method(made, &methods[1]) < 0)
        goto failed;
    capsule = PyCapsule_New((void *)send_part, FRAMES_CAPSULE, NULL);
    if (capsule == NULL || PyModule_AddObject(made, "capsule", capsule) < 0)
        goto failed;
    return made;
failed:
    Py_DECREF(made);
    return NULL;
}
