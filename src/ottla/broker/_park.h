/* A Fetch by a client that has read all there is of one partition, alone or in a session of which nothing else is due:
 * it waits, as `Fetch.park` has it wait.
 *
 * K1  Whatever is not of that form is left alone, before anything has changed: sessions that begin, end or forget,
 *     followers, racks, several partitions, topics by name, tagged fields, more than one byte to wait for, epochs that
 *     differ, and whatever has something to read.
 */
#ifndef OTTLA_PARK_H
#define OTTLA_PARK_H

#include "_lane.h"

#define FETCH 1
#define FETCH_SINCE 13       /* topics by id */
#define NO_REPLICA_SINCE 15  /* who follows says so in a tag */
#define HINTS_SINCE 16
#define FETCH_BYTES 76       /* from the time to wait to the end, for one partition */
#define SILENT_BYTES 25      /* the same for none, in a session */
#define SESSION_EPOCH_MAX 0x7fffffff

typedef struct {
    int32_t wait_ms, bytes_min, bytes_max, session_id, session_epoch, index, epoch, partition_bytes_max;
    int64_t offset, own_start;
    const uint8_t *topic_id; /* NULL in a session that has nothing new to say */
    int committed;
} Wish;

/* Find what a request of our form says; 0 when it is of another. */
static int read_fetch(const Request *request, Wish *wish)
{
    const uint8_t *at = request->at;
    if (request->version < NO_REPLICA_SINCE) {
        if (request->end - at < 4 || read_32(at) >= 0)
            return 0;
        at += 4;
    }
    Py_ssize_t size = request->end - at;
    if (size != FETCH_BYTES && size != SILENT_BYTES)
        return 0;
    wish->wait_ms = read_32(at);
    wish->bytes_min = read_32(at + 4);
    wish->bytes_max = read_32(at + 8);
    wish->committed = at[12] == 1;
    wish->session_id = read_32(at + 13);
    wish->session_epoch = read_32(at + 17);
    int alone = wish->session_id == 0 && wish->session_epoch == -1;
    if (wish->wait_ms <= 0 || wish->bytes_min != 1 || wish->bytes_max < 1 || (!alone && (wish->session_id <= 0 || wish->session_epoch <= 0)))
        return 0;
    wish->topic_id = NULL;
    if (size == SILENT_BYTES) /* no topics, nothing forgotten, no rack, no tags */
        return !alone && memcmp(at + 21, "\1\1\1\0", 4) == 0;
    if (at[21] != ONE)
        return 0;
    wish->topic_id = at + 22;
    at += 22 + ID_BYTES;
    wish->index = read_32(at + 1);
    wish->epoch = read_32(at + 5);
    wish->offset = read_64(at + 9);
    wish->own_start = read_64(at + 21);
    wish->partition_bytes_max = read_32(at + 29);
    /* One partition, no epoch fetched; no tags of partition and topic, nothing forgotten, no rack, no tags. */
    return at[0] == ONE && read_32(at + 17) < 0 && memcmp(at + 33, "\0\0\1\1\0", 5) == 0 && wish->offset >= 0
           && wish->partition_bytes_max >= 0;
}

/* Whether a client that is at an offset has read all that there is of a partition, and may wait for more. */
static int has_read_all(PyObject *partition, int64_t offset, int64_t known_epoch)
{
    PyObject *log = AT(partition, partition_log);
    int64_t watermark, end, start, epoch;
    if (!Py_IS_TYPE(log, LogType) || AT(partition, partition_refusal) != Py_None
        || !whole(AT(partition, partition_watermark), &watermark) || !whole(AT(log, log_end), &end)
        || !whole(AT(log, log_start), &start) || !whole(AT(partition, partition_epoch), &epoch))
        return 0;
    PyObject *producers = AT(log, log_producers);
    return offset == watermark && offset == end && offset >= start && (known_epoch < 0 || known_epoch == epoch)
           && Py_IS_TYPE(producers, ProducersType)
           && PyDict_GET_SIZE(AT(producers, producers_ongoing)) == 0
           && PyList_GET_SIZE(AT(producers, producers_unreplicated)) == 0;
}

/* An object of one of our classes, every slot of which is still to be filled. */
static PyObject *blank(PyTypeObject *type)
{
    return type->tp_alloc(type, 0);
}

/* `Wanted.update` */
static int update(PyObject *wanted, const Wish *wish)
{
    put(wanted, wanted_fetched, Py_NewRef(minus_one));
    put(wanted, wanted_known, Py_NewRef(any_watermark));
    return put_whole(wanted, wanted_bytes_max, wish->partition_bytes_max) < 0
                   || put_whole(wanted, wanted_epoch, wish->epoch) < 0
                   || put_whole(wanted, wanted_offset, wish->offset) < 0
                   || put_whole(wanted, wanted_own_start, wish->own_start) < 0
               ? -1
               : 0;
}

static PyObject *make_wanted(const Wish *wish, PyObject *key, PyObject *partition)
{
    PyObject *wanted = blank(WantedType);
    if (wanted == NULL)
        return NULL;
    AT(wanted, wanted_key) = Py_NewRef(key);
    AT(wanted, wanted_partition) = Py_NewRef(partition);
    AT(wanted, wanted_watermark) = Py_NewRef(minus_one);
    AT(wanted, wanted_start) = Py_NewRef(minus_one);
    if (update(wanted, wish) < 0)
        Py_CLEAR(wanted);
    return wanted;
}

static PyObject *make_pending(const Lane *lane, const Request *request)
{
    PyObject *pending = blank(PendingType);
    if (pending == NULL)
        return NULL;
    AT(pending, pending_parts) = Py_NewRef(Py_None);
    AT(pending, pending_message) = Py_NewRef(Py_None);
    AT(pending, pending_then) = Py_NewRef(Py_None);
    AT(pending, pending_connection) = Py_NewRef(request->connection);
    AT(pending, pending_dispatcher) = Py_NewRef(lane->dispatcher);
    AT(pending, pending_route) = Py_NewRef(request->route);
    if (put_whole(pending, pending_correlation, request->correlation_id) < 0
        || put(pending, pending_began, PyFloat_FromDouble(request->began)) < 0)
        Py_CLEAR(pending);
    return pending;
}

/* A fetch that waits: for `wanted` alone, or in a session. */
static PyObject *make_fetch(const Lane *lane, const Request *request, const Wish *wish, PyObject *wanted,
                            PyObject *session, PyObject *pending)
{
    PyObject *fetch = blank(FetchType);
    if (fetch == NULL)
        return NULL;
    int64_t bytes_max = wish->bytes_max < lane->fetch_bytes_max ? wish->bytes_max : lane->fetch_bytes_max;
    AT(fetch, fetch_alone) = Py_NewRef(session == NULL ? wanted : Py_None);
    AT(fetch, fetch_broker) = Py_NewRef(lane->broker);
    AT(fetch, fetch_by_id) = Py_NewRef(Py_True);
    AT(fetch, fetch_committed) = PyBool_FromLong(wish->committed);
    AT(fetch, fetch_connection) = Py_NewRef(request->connection);
    AT(fetch, fetch_full) = PyBool_FromLong(session == NULL);
    AT(fetch, fetch_parked) = Py_NewRef(Py_None);
    AT(fetch, fetch_pending) = Py_NewRef(pending);
    AT(fetch, fetch_session) = Py_NewRef(session == NULL ? Py_None : session);
    AT(fetch, fetch_timer) = Py_NewRef(Py_None);
    AT(fetch, fetch_came_by) = Py_NewRef(no_text);
    AT(fetch, fetch_rack) = Py_NewRef(no_text);
    AT(fetch, fetch_follower) = Py_NewRef(Py_None);
    AT(fetch, fetch_leader_only) = Py_NewRef(Py_False);
    AT(fetch, fetch_settled) = Py_NewRef(Py_False);
    AT(fetch, fetch_no_room) = Py_NewRef(Py_False);
    AT(fetch, fetch_listener) =
        Py_NewRef(request->version >= HINTS_SINCE ? AT(request->connection, connection_listener) : Py_None);
    if (put_whole(fetch, fetch_bytes_max, bytes_max) < 0 || put_whole(fetch, fetch_bytes_min, wish->bytes_min) < 0
        || put_whole(fetch, fetch_wait_ms, wish->wait_ms) < 0 || put_whole(fetch, fetch_bytes_read, 0) < 0
        || put_whole(fetch, fetch_gathered, 0) < 0
        || put(fetch, fetch_grown, PyDict_New()) < 0 || put(fetch, fetch_growth, PyDict_New()) < 0
        || put(fetch, fetch_wanted, session == NULL ? PyTuple_Pack(1, wanted) : PyTuple_New(0)) < 0)
        Py_CLEAR(fetch);
    return fetch;
}

/* Have a fetch wait for growth, the client's patience, or its going away. */
static int park(const Lane *lane, const Request *request, const Wish *wish, PyObject *wanted, PyObject *session,
                PyObject *partition)
{
    PyObject *connection = request->connection, *pending = make_pending(lane, request);
    PyObject *fetch = pending == NULL ? NULL : make_fetch(lane, request, wish, wanted, session, pending);
    PyObject *finish = fetch == NULL ? NULL : PyObject_GetAttr(fetch, name_finish);
    PyObject *cancel = fetch == NULL ? NULL : PyObject_GetAttr(fetch, name_cancel);
    PyObject *delay = PyFloat_FromDouble(wish->wait_ms / 1000.0), *timer = NULL;
    if (finish != NULL && cancel != NULL && delay != NULL)
        timer = PyObject_CallFunctionObjArgs(lane->call_later, delay, finish, NULL);
    int failed = timer == NULL || put(fetch, fetch_timer, timer) < 0
                 || PyList_Append(AT(connection, connection_on_close), cancel) < 0
                 || (session != NULL ? put(session, interest_parked, PyObject_GetAttr(fetch, name_wake))
                                     : PyDict_SetItem(AT(partition, partition_readers), fetch, Py_None))
                        < 0
                 || put(connection, connection_pace, Py_NewRef(Py_None)) < 0
                 || (partition != NULL && add(partition, partition_fetches, 1) < 0)
                 || tell(AT(connection, connection_owed), name_append, pending) < 0;
    Py_XDECREF(pending);
    Py_XDECREF(fetch);
    Py_XDECREF(finish);
    Py_XDECREF(cancel);
    Py_XDECREF(delay);
    return failed ? -1 : 0;
}

/* Without a session */

static Served park_alone(const Lane *lane, const Request *request, const Wish *wish, PyObject *key)
{
    PyObject *partition = partition_by(lane->by_id, key);
    if (partition == NULL || !has_read_all(partition, wish->offset, wish->epoch))
        return PyErr_Occurred() ? BROKEN : NOT_OURS;
    PyObject *wanted = make_wanted(wish, key, partition);
    int failed = wanted == NULL || park(lane, request, wish, wanted, NULL, partition) < 0;
    Py_XDECREF(wanted);
    return failed ? BROKEN : SERVED;
}

/* In a session */

/* The session that a request goes on with, borrowed; NULL when there is none for us, or with an error set. */
static PyObject *find_session(const Lane *lane, const Wish *wish)
{
    PyObject *id = PyLong_FromLong(wish->session_id);
    PyObject *session = id == NULL ? NULL : PyDict_GetItemWithError(lane->sessions, id);
    Py_XDECREF(id);
    int64_t epoch;
    if (session == NULL || !Py_IS_TYPE(session, FetchSessionType) || AT(session, interest_by_id) != Py_True
        || AT(session, interest_follows) != Py_False || AT(session, interest_parked) != Py_None
        || !whole(AT(session, interest_epoch), &epoch) || epoch != wish->session_epoch || epoch == SESSION_EPOCH_MAX)
        return NULL;
    return session;
}

/* What is due in a session once it has what the request asks for: 1 for `*wanted`, 0 for nothing, -1 for more than that, or
 * with an error set. */
static int due_in(PyObject *session, PyObject *key, PyObject **wanted)
{
    PyObject *due = AT(session, interest_due), *other;
    Py_ssize_t at = 0;
    *wanted = NULL;
    if (key != NULL && (*wanted = PyDict_GetItemWithError(AT(session, interest_wanted), key)) == NULL)
        return -1; /* a partition that is new to the session */
    if (PyDict_GET_SIZE(due) > 1)
        return -1;
    if (PyDict_Next(due, &at, NULL, &other)) {
        if (*wanted != NULL && *wanted != other)
            return -1;
        *wanted = other;
    }
    return *wanted == NULL ? 0 : Py_IS_TYPE(*wanted, WantedType) ? 1 : -1;
}

/* Whether there is nothing to read of what is due. */
static int is_at_end(PyObject *wanted, const Wish *wish)
{
    PyObject *partition = AT(wanted, wanted_partition);
    int64_t offset = wish->offset, epoch = wish->epoch, fetched;
    if (wish->topic_id == NULL
        && (!whole(AT(wanted, wanted_offset), &offset) || !whole(AT(wanted, wanted_epoch), &epoch)
            || !whole(AT(wanted, wanted_fetched), &fetched) || fetched >= 0))
        return 0;
    return partition != NULL && Py_IS_TYPE(partition, PartitionType) && has_read_all(partition, offset, epoch);
}

/* `FetchSessions.find` and `FetchSession.next_epoch`: the session was used just now. */
static int use_session(const Lane *lane, PyObject *session, const Wish *wish)
{
    PyObject *id = AT(session, interest_number);
    double now;
    if (monotonic(lane, &now) < 0)
        return -1;
    Py_INCREF(session);
    int failed = PyDict_DelItem(lane->sessions, id) < 0 || PyDict_SetItem(lane->sessions, id, session) < 0
                 || put_whole(session, interest_touched, (int64_t)(now * 1000)) < 0
                 || put_whole(session, interest_epoch, (int64_t)wish->session_epoch + 1) < 0;
    Py_DECREF(session);
    return failed ? -1 : 0;
}

static Served park_session(const Lane *lane, const Request *request, const Wish *wish, PyObject *key)
{
    PyObject *session = find_session(lane, wish), *wanted;
    int due = session == NULL ? -1 : due_in(session, key, &wanted);
    if (due < 0 || (due && !is_at_end(wanted, wish)))
        return PyErr_Occurred() ? BROKEN : NOT_OURS;
    PyObject *partition = due ? AT(wanted, wanted_partition) : NULL;
    /* A session listens to whatever it wants; should it not, the dispatcher sees to it. */
    if (due && partition_by(lane->by_id, AT(wanted, wanted_key)) != partition)
        return PyErr_Occurred() ? BROKEN : NOT_OURS;
    if (due && PyDict_Contains(AT(partition, partition_readers), session) != 1)
        return PyErr_Occurred() ? BROKEN : NOT_OURS;
    if (use_session(lane, session, wish) < 0 || (key != NULL && update(wanted, wish) < 0)
        || (due && PyDict_SetItem(AT(session, interest_due), AT(wanted, wanted_key), wanted) < 0)
        || park(lane, request, wish, NULL, session, partition) < 0)
        return BROKEN;
    return SERVED;
}

static Served serve_fetch(const Lane *lane, const Request *request)
{
    Wish wish;
    PyObject *connection = request->connection, *key = NULL;
    if (request->version < FETCH_SINCE || !read_fetch(request, &wish)
        || AT(connection, connection_closed) != Py_False || PyObject_Size(AT(connection, connection_owed)) + 1 >= open_requests_max)
        return NOT_OURS;
    if (wish.topic_id != NULL
        && (key = Py_BuildValue("y#i", wish.topic_id, (Py_ssize_t)ID_BYTES, (int)wish.index)) == NULL)
        return BROKEN;
    Served served = wish.session_id ? park_session(lane, request, &wish, key) : park_alone(lane, request, &wish, key);
    Py_XDECREF(key);
    fetches_parked += served == SERVED;
    return served;
}

#endif
