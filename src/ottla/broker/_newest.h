/* Who waits for the newest record of one partition, alone or in a session in which no other has grown, is answered as
 * `newest.py` does it; all others are woken.
 *
 * N1  Whatever is not of that form is left alone, and woken as always.
 * N2  Nobody is answered at once unless the read under way ends with this request (law C7 of a connection).
 */
#ifndef OTTLA_NEWEST_H
#define OTTLA_NEWEST_H

#include "_lane.h"

#define NEWEST_HEAD_BYTES 72
#define TWO_BYTE_LENGTH_MAX ((1 << 14) - 2) /* whose length takes two bytes */

/* The bytes of the answer; NULL without an error when it is one for the common road. */
static PyObject *newest(PyObject *fetch, PyObject *wanted, PyObject *partition, PyObject *pending, int64_t session,
                        int64_t end_offset)
{
    PyObject *log = AT(partition, partition_log), *tail = AT(log, log_tail), *producers = AT(log, log_producers);
    int64_t offset, newest_offset, epoch, leader_epoch, fetched, start, correlation_id, index, bytes_max;
    if (!whole(AT(wanted, wanted_offset), &offset) || !whole(AT(tail, tail_newest_offset), &newest_offset)
        || offset != newest_offset || !whole(AT(wanted, wanted_epoch), &epoch)
        || !whole(AT(partition, partition_epoch), &leader_epoch) || (epoch >= 0 && epoch != leader_epoch)
        || !whole(AT(wanted, wanted_fetched), &fetched) || fetched >= 0 || !whole(AT(log, log_start), &start)
        || offset < start || !whole(AT(wanted, wanted_bytes_max), &bytes_max) || bytes_max < 0
        || !whole(AT(pending, pending_correlation), &correlation_id)
        || !Py_IS_TYPE(producers, ProducersType) || PyDict_GET_SIZE(AT(producers, producers_ongoing))
        || PyList_GET_SIZE(AT(producers, producers_unreplicated)))
        return NULL;
    PyObject *records = AT(tail, tail_newest), *key = AT(wanted, wanted_key);
    if (!PyTuple_CheckExact(key) || PyTuple_GET_SIZE(key) != 2 || !PyBytes_CheckExact(PyTuple_GET_ITEM(key, 0))
        || PyBytes_GET_SIZE(PyTuple_GET_ITEM(key, 0)) != ID_BYTES || !whole(PyTuple_GET_ITEM(key, 1), &index)
        || !PyBytes_CheckExact(records) || PyBytes_GET_SIZE(records) > TWO_BYTE_LENGTH_MAX)
        return NULL;
    Py_ssize_t size = PyBytes_GET_SIZE(records);
    int long_size = size + 1 >= 128;
    PyObject *answer = PyBytes_FromStringAndSize(NULL, NEWEST_HEAD_BYTES + (long_size ? 2 : 1) + size + 3);
    if (answer == NULL)
        return NULL;
    uint8_t *at = (uint8_t *)PyBytes_AS_STRING(answer);
    at = write_big(at, PyBytes_GET_SIZE(answer) - 4, 4);
    at = write_big(at, correlation_id, 4);
    at = write_big(at, 0, 7); /* tags of the header, throttle time, error */
    at = write_big(at, session, 4);
    *at++ = ONE;
    memcpy(at, PyBytes_AS_STRING(PyTuple_GET_ITEM(key, 0)), ID_BYTES);
    at += ID_BYTES;
    *at++ = ONE;
    at = write_big(at, index, 4);
    at = write_big(at, 0, 2);
    at = write_big(at, end_offset, 8); /* high watermark, last stable offset */
    at = write_big(at, end_offset, 8);
    at = write_big(at, start, 8);
    *at++ = AT(fetch, fetch_committed) == Py_True; /* aborted transactions: none, or not asked for */
    at = write_big(at, -1, 4);                     /* preferred replica */
    if (long_size) {
        *at++ = (uint8_t)((size + 1) | 128);
        *at++ = (uint8_t)((size + 1) >> 7);
    } else
        *at++ = (uint8_t)(size + 1);
    memcpy(at, PyBytes_AS_STRING(records), size);
    memset(at + size, 0, 3); /* tags of the partition, the topic and the answer */
    return answer;
}

/* Have a fetch wait no more, as `Fetch._unpark` does; `session` is NULL where it has none. */
static int unpark(PyObject *fetch, PyObject *session, PyObject *partition, PyObject *connection)
{
    PyObject *timer = AT(fetch, fetch_timer), *waiting = AT(connection, connection_on_close);
    if (timer != Py_None && tell(timer, name_cancel, NULL) < 0)
        return -1;
    put(fetch, fetch_timer, Py_NewRef(Py_None));
    for (Py_ssize_t i = PyList_GET_SIZE(waiting) - 1; i >= 0; i--) {
        PyObject *each = PyList_GET_ITEM(waiting, i);
        if (PyMethod_Check(each) && PyMethod_GET_SELF(each) == fetch) {
            if (PySequence_DelItem(waiting, i) < 0)
                return -1;
            break;
        }
    }
    if (session != NULL)
        return put(session, interest_parked, Py_NewRef(Py_None));
    return PyDict_DelItem(AT(partition, partition_readers), fetch);
}

/* Whether a fetch is one that can be answered at once: the only thing its connection owes. */
static int is_first(PyObject *connection, PyObject *pending)
{
    if (connection == NULL || !PyObject_TypeCheck(connection, ConnectionType)
        || AT(connection, connection_closed) != Py_False || AT(connection, connection_corked) != Py_None
        || AT(connection, connection_stalled) != Py_False
        || PyObject_Size(AT(connection, connection_owed)) != 1) /* those behind it may be ready */
        return 0;
    PyObject *first = PySequence_GetItem(AT(connection, connection_owed), 0);
    if (first == NULL)
        return -1;
    Py_DECREF(first);
    return first == pending;
}

/* What alone a session would be told of, borrowed; NULL when it is more, or with an error set. */
static PyObject *only_due(PyObject *session, PyObject *partition)
{
    PyObject *due = AT(session, interest_due);
    PyObject *key = PyTuple_Pack(2, AT(partition, partition_topic_id), AT(partition, partition_index));
    PyObject *wanted = key == NULL ? NULL : PyDict_GetItemWithError(AT(session, interest_wanted), key);
    int alone = wanted != NULL && Py_IS_TYPE(wanted, WantedType) && AT(wanted, wanted_partition) == partition;
    if (alone && PyDict_GET_SIZE(due))
        alone = PyDict_GET_SIZE(due) == 1 && PyDict_GetItemWithError(due, key) == wanted;
    Py_XDECREF(key);
    return alone ? wanted : NULL;
}

/* The fetch that a session waits in, borrowed; NULL when it waits in none. */
static PyObject *waiting_in(PyObject *session)
{
    PyObject *parked = AT(session, interest_parked);
    PyObject *fetch = parked != NULL && PyMethod_Check(parked) ? PyMethod_GET_SELF(parked) : NULL;
    if (fetch == NULL || !Py_IS_TYPE(fetch, FetchType) || AT(fetch, fetch_session) != session
        || AT(fetch, fetch_full) != Py_False || AT(fetch, fetch_by_id) != Py_True
        || PyObject_Size(AT(fetch, fetch_rack)) != 0)
        return NULL;
    return fetch;
}

/* What a session remembers of an answer that told of one partition alone. */
static int tell_session(PyObject *session, PyObject *wanted, PyObject *partition, int64_t end_offset)
{
    if (PyDict_SetItem(AT(session, interest_due), AT(wanted, wanted_key), wanted) < 0)
        return -1;
    put(wanted, wanted_start, Py_NewRef(AT(AT(partition, partition_log), log_start)));
    return put_whole(wanted, wanted_watermark, end_offset);
}

/* Answer a fetch that waits for nothing but this partition, or a session of which nothing else has grown. */
static Served answer_reader(const Lane *lane, PyObject *reader, PyObject *partition, int64_t end_offset)
{
    PyObject *session = Py_IS_TYPE(reader, FetchSessionType) ? reader : NULL;
    PyObject *fetch = session == NULL ? reader : waiting_in(session);
    int64_t bytes_min, session_id = 0;
    if (fetch == NULL || !Py_IS_TYPE(fetch, FetchType) || AT(fetch, fetch_follower) != Py_None
        || !whole(AT(fetch, fetch_bytes_min), &bytes_min) || bytes_min > 1 || PyDict_GET_SIZE(AT(fetch, fetch_grown))
        || (session != NULL && !whole(AT(session, interest_number), &session_id)))
        return NOT_OURS;
    PyObject *pending = AT(fetch, fetch_pending);
    PyObject *wanted = session == NULL ? AT(fetch, fetch_alone) : only_due(session, partition);
    if (wanted == NULL || !Py_IS_TYPE(pending, PendingType) || !Py_IS_TYPE(wanted, WantedType))
        return PyErr_Occurred() ? BROKEN : NOT_OURS;
    PyObject *connection = AT(pending, pending_connection);
    int first = is_first(connection, pending);
    PyObject *answer = first > 0 ? newest(fetch, wanted, partition, pending, session_id, end_offset) : NULL;
    if (answer == NULL)
        return PyErr_Occurred() ? BROKEN : NOT_OURS;
    Py_ssize_t size = PyBytes_GET_SIZE(AT(AT(AT(partition, partition_log), log_tail), tail_newest));
    Py_INCREF(fetch);
    Py_INCREF(connection);
    Py_INCREF(pending);
    put(fetch, fetch_pending, Py_NewRef(Py_None));
    int failed = tell(AT(connection, connection_owed), name_popleft, NULL) < 0 || send_part(connection, answer) < 0
                 || add(partition, partition_fetches, 1) < 0 || add(partition, partition_bytes_out, size) < 0
                 || unpark(fetch, session, partition, connection) < 0
                 || (session != NULL && tell_session(session, wanted, partition, end_offset) < 0)
                 || took_since(lane, AT(pending, pending_route), PyFloat_AsDouble(AT(pending, pending_began))) < 0;
    Py_DECREF(answer);
    Py_DECREF(pending);
    Py_DECREF(connection);
    Py_DECREF(fetch);
    readers_answered += !failed;
    return failed ? BROKEN : SERVED;
}

/* Have the error that is set reported as a bug, which is then no longer set (L10 of `Partition`). */
static int report_bug(PyObject *partition)
{
    PyObject *kind, *error, *trace;
    if (!PyErr_ExceptionMatches(PyExc_Exception))
        return -1;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    if (trace != NULL)
        PyException_SetTraceback(error, trace);
    int failed = tell(AT(partition, partition_log), name_report_bug, error);
    Py_XDECREF(kind);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return failed;
}

/* Let everybody who waits for a partition hear that all below `end_offset` is committed. */
static int wake_readers(const Lane *lane, PyObject *partition, int64_t end_offset)
{
    PyObject *readers = AT(partition, partition_readers);
    if (PyDict_GET_SIZE(readers) == 0)
        return 0;
    int at_once = AT(lane->connections, connections_at_end) == Py_True;
    PyObject *all = PyDict_Keys(readers);
    if (all == NULL)
        return -1;
    int failed = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all) && !failed; i++) {
        PyObject *reader = PyList_GET_ITEM(all, i);
        Served answered = at_once ? answer_reader(lane, reader, partition, end_offset) : NOT_OURS;
        if (answered == BROKEN || (answered == NOT_OURS && tell(reader, name_wake, partition) < 0))
            failed = report_bug(partition) < 0;
    }
    Py_DECREF(all);
    return failed ? -1 : 0;
}

#endif
