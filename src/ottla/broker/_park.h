/* A Fetch of one partition by a client that has read all there is: it waits, as `Fetch.park` has it wait.
 *
 * K1  Whatever is not of that form is left alone: sessions, followers, racks, several partitions, topics by name, tagged
 *     fields, more than one byte to wait for, epochs that differ, and whatever has something to read.
 */
#ifndef OTTLA_PARK_H
#define OTTLA_PARK_H

#include "_lane.h"

#define FETCH 1
#define FETCH_SINCE 13       /* topics by id */
#define NO_REPLICA_SINCE 15  /* who follows says so in a tag */
#define HINTS_SINCE 16
#define FETCH_BYTES 76       /* from the time to wait to the end, for one partition */
#define OWED_MAX 255         /* one more and the connection stalls */

typedef struct {
    int32_t wait_ms, bytes_min, bytes_max, index, epoch, partition_bytes_max;
    int64_t offset, own_start;
    const uint8_t *topic_id;
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
    if (request->end - at != FETCH_BYTES)
        return 0;
    wish->wait_ms = read_32(at);
    wish->bytes_min = read_32(at + 4);
    wish->bytes_max = read_32(at + 8);
    wish->committed = at[12] == 1;
    if (wish->wait_ms <= 0 || wish->bytes_min != 1 || read_32(at + 13) != 0 || read_32(at + 17) != -1 || at[21] != ONE)
        return 0; /* a session, or not one topic */
    wish->topic_id = at + 22;
    at += 22 + ID_BYTES;
    wish->index = read_32(at + 1);
    wish->epoch = read_32(at + 5);
    wish->offset = read_64(at + 9);
    wish->own_start = read_64(at + 21);
    wish->partition_bytes_max = read_32(at + 29);
    /* One partition, no epoch fetched; no tags of partition and topic, nothing forgotten, no rack, no tags. */
    return at[0] == ONE && read_32(at + 17) < 0 && memcmp(at + 33, "\0\0\1\1\0", 5) == 0 && wish->offset >= 0;
}

/* Whether a client has read all that there is of a partition, and may wait for more. */
static int has_read_all(PyObject *partition, const Wish *wish)
{
    PyObject *log = AT(partition, partition_log);
    int64_t watermark, end, start, epoch;
    if (!Py_IS_TYPE(log, LogType) || AT(partition, partition_refusal) != Py_None
        || !whole(AT(partition, partition_watermark), &watermark) || !whole(AT(log, log_end), &end)
        || !whole(AT(log, log_start), &start) || !whole(AT(partition, partition_epoch), &epoch))
        return 0;
    PyObject *producers = AT(log, log_producers);
    return wish->offset == watermark && wish->offset == end && wish->offset >= start
           && (wish->epoch < 0 || wish->epoch == epoch) && Py_IS_TYPE(producers, ProducersType)
           && PyDict_GET_SIZE(AT(producers, producers_ongoing)) == 0
           && PyList_GET_SIZE(AT(producers, producers_unreplicated)) == 0;
}

/* An object of one of our classes, every slot of which is still to be filled. */
static PyObject *blank(PyTypeObject *type)
{
    return type->tp_alloc(type, 0);
}

static PyObject *make_wanted(const Wish *wish, PyObject *key, PyObject *partition)
{
    PyObject *wanted = blank(WantedType);
    if (wanted == NULL)
        return NULL;
    AT(wanted, wanted_key) = Py_NewRef(key);
    AT(wanted, wanted_partition) = Py_NewRef(partition);
    AT(wanted, wanted_fetched) = Py_NewRef(minus_one);
    AT(wanted, wanted_watermark) = Py_NewRef(minus_one);
    AT(wanted, wanted_start) = Py_NewRef(minus_one);
    AT(wanted, wanted_known) = Py_NewRef(any_watermark);
    if (put_whole(wanted, wanted_bytes_max, wish->partition_bytes_max) < 0
        || put_whole(wanted, wanted_epoch, wish->epoch) < 0 || put_whole(wanted, wanted_offset, wish->offset) < 0
        || put_whole(wanted, wanted_own_start, wish->own_start) < 0)
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

static PyObject *make_fetch(const Lane *lane, const Request *request, const Wish *wish, PyObject *wanted,
                            PyObject *pending)
{
    PyObject *fetch = blank(FetchType);
    if (fetch == NULL)
        return NULL;
    int64_t bytes_max = wish->bytes_max < lane->fetch_bytes_max ? wish->bytes_max : lane->fetch_bytes_max;
    AT(fetch, fetch_alone) = Py_NewRef(wanted);
    AT(fetch, fetch_broker) = Py_NewRef(lane->broker);
    AT(fetch, fetch_by_id) = Py_NewRef(Py_True);
    AT(fetch, fetch_committed) = PyBool_FromLong(wish->committed);
    AT(fetch, fetch_connection) = Py_NewRef(request->connection);
    AT(fetch, fetch_full) = Py_NewRef(Py_True);
    AT(fetch, fetch_parked) = Py_NewRef(Py_None);
    AT(fetch, fetch_pending) = Py_NewRef(pending);
    AT(fetch, fetch_session) = Py_NewRef(Py_None);
    AT(fetch, fetch_timer) = Py_NewRef(Py_None);
    AT(fetch, fetch_came_by) = Py_NewRef(no_text);
    AT(fetch, fetch_rack) = Py_NewRef(no_text);
    AT(fetch, fetch_follower) = Py_NewRef(Py_None);
    AT(fetch, fetch_leader_only) = Py_NewRef(Py_False);
    AT(fetch, fetch_settled) = Py_NewRef(Py_False);
    AT(fetch, fetch_listener) =
        Py_NewRef(request->version >= HINTS_SINCE ? AT(request->connection, connection_listener) : Py_None);
    if (put_whole(fetch, fetch_bytes_max, bytes_max) < 0 || put_whole(fetch, fetch_bytes_min, wish->bytes_min) < 0
        || put_whole(fetch, fetch_wait_ms, wish->wait_ms) < 0 || put_whole(fetch, fetch_bytes_read, 0) < 0
        || put(fetch, fetch_grown, PyDict_New()) < 0 || put(fetch, fetch_growth, PyDict_New()) < 0
        || put(fetch, fetch_wanted, PyTuple_Pack(1, wanted)) < 0)
        Py_CLEAR(fetch);
    return fetch;
}

/* Have a fetch wait for growth, the client's patience, or its going away. */
static int park(const Lane *lane, const Wish *wish, PyObject *fetch, PyObject *partition, PyObject *connection)
{
    PyObject *finish = PyObject_GetAttr(fetch, name_finish), *cancel = PyObject_GetAttr(fetch, name_cancel);
    PyObject *delay = PyFloat_FromDouble(wish->wait_ms / 1000.0), *timer = NULL;
    if (finish != NULL && cancel != NULL && delay != NULL)
        timer = PyObject_CallFunctionObjArgs(lane->call_later, delay, finish, NULL);
    int failed = put(fetch, fetch_timer, timer) < 0 || PyList_Append(AT(connection, connection_on_close), cancel) < 0
                 || PyDict_SetItem(AT(partition, partition_readers), fetch, Py_None) < 0;
    Py_XDECREF(finish);
    Py_XDECREF(cancel);
    Py_XDECREF(delay);
    return failed ? -1 : 0;
}

static Served serve_fetch(const Lane *lane, const Request *request)
{
    Wish wish;
    PyObject *connection = request->connection;
    if (request->version < FETCH_SINCE || !read_fetch(request, &wish)
        || AT(connection, connection_closed) != Py_False || PyObject_Size(AT(connection, connection_owed)) >= OWED_MAX)
        return NOT_OURS;
    PyObject *key = Py_BuildValue("y#i", wish.topic_id, (Py_ssize_t)ID_BYTES, (int)wish.index);
    PyObject *partition = partition_by(lane->by_id, key), *wanted = NULL, *pending = NULL, *fetch = NULL;
    Served served = PyErr_Occurred() ? BROKEN : NOT_OURS;
    if (partition != NULL && has_read_all(partition, &wish)) {
        served = BROKEN;
        wanted = make_wanted(&wish, key, partition);
        pending = make_pending(lane, request);
        if (wanted != NULL && pending != NULL)
            fetch = make_fetch(lane, request, &wish, wanted, pending);
        if (fetch != NULL && park(lane, &wish, fetch, partition, connection) == 0
            && put(connection, connection_pace, Py_NewRef(Py_None)) == 0 && add(partition, partition_fetches, 1) == 0
            && tell(AT(connection, connection_owed), name_append, pending) == 0)
            served = SERVED;
    }
    Py_XDECREF(key);
    Py_XDECREF(wanted);
    Py_XDECREF(pending);
    Py_XDECREF(fetch);
    return served;
}

#endif
