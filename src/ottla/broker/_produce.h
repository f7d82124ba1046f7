/* A Produce of one batch for one partition, as `express.py` serves it.
 *
 * X1  Whatever is not of that form is left alone: several topics or partitions, tagged fields, transactions, acks=0,
 *     partitions that are not awake, are replicated, or are of internal topics.
 * X2  A batch that is not plain is left alone as well, before anything has changed.
 */
#ifndef OTTLA_PRODUCE_H
#define OTTLA_PRODUCE_H

#include "_newest.h"

#define PRODUCE 0
#define PRODUCE_SINCE 9
#define PRODUCE_BY_ID_SINCE 13
#define PRODUCED_HEAD_BYTES 10
#define PRODUCED_PART_BYTES 40
#define BATCH_BYTES_MIN 61
#define ATTRIBUTES_AT 22
#define TRANSACTIONAL 0x10

typedef struct {
    int16_t acks;
    int32_t index;
    uint8_t *name, *records; /* where the topic and the batch begin, in the request */
    Py_ssize_t name_bytes, records_bytes;
} Produce;

/* Find what a request of our form says; 0 when it is of another. */
static int read_produce(const Request *request, Produce *produce)
{
    uint8_t *at = request->at, *end = request->end;
    if (end - at < 9)
        return 0;
    produce->acks = read_16(at + 1);
    if (at[0] != 0 || at[7] != ONE || !(produce->acks == 1 || produce->acks == -1)) /* transactional id, topics */
        return 0;
    produce->name = at + 8;
    produce->name_bytes = request->version >= PRODUCE_BY_ID_SINCE ? ID_BYTES : at[8];
    if (request->version < PRODUCE_BY_ID_SINCE && !(1 < at[8] && at[8] < 128))
        return 0;
    if (end - produce->name < produce->name_bytes + 8)
        return 0;
    at = produce->name + produce->name_bytes;
    if (at[0] != ONE)
        return 0;
    produce->index = read_32(at + 1);
    at += 5;
    Py_ssize_t size = 0;
    int shift = 0;
    for (; shift < 21 && *at & 128; shift += 7)
        size |= (Py_ssize_t)(*at++ & 127) << shift;
    if (shift == 21)
        return 0;
    size |= (Py_ssize_t)*at++ << shift;
    produce->records = at;
    produce->records_bytes = size - 1;
    if (size <= BATCH_BYTES_MIN || end - at != size - 1 + 3 || memcmp(at + size - 1, "\0\0\0", 3) != 0)
        return 0;
    return !(at[ATTRIBUTES_AT] & TRANSACTIONAL);
}

/* The partition, borrowed; NULL when there is none for us, or with an error set. */
static PyObject *find_produced(const Lane *lane, const Request *request, const Produce *produce)
{
    int by_id = request->version >= PRODUCE_BY_ID_SINCE;
    PyObject *key = by_id ? Py_BuildValue("y#i", produce->name, produce->name_bytes, (int)produce->index)
                          : Py_BuildValue("s#i", produce->name + 1, produce->name_bytes - 1, (int)produce->index);
    if (key == NULL) {
        if (PyErr_ExceptionMatches(PyExc_UnicodeDecodeError))
            PyErr_Clear();
        return NULL;
    }
    PyObject *partition = partition_by(by_id ? lane->by_id : lane->by_name, key);
    Py_DECREF(key);
    if (partition == NULL || AT(partition, partition_refusal) != Py_None
        || AT(partition, partition_leadership) != Py_None || PyDict_GET_SIZE(AT(partition, partition_tailers)))
        return NULL;
    return PySet_Contains(lane->internal, AT(partition, partition_topic)) == 0 ? partition : NULL;
}

/* The batch is in the log: have it made durable, and shown to who waits. */
static int flush(const Lane *lane, PyObject *partition, int64_t end_offset)
{
    PyObject *flusher = AT(partition, partition_flusher), *log = AT(partition, partition_log);
    int64_t synced, base, flush_messages;
    if (!Py_IS_TYPE(flusher, OsFlusherType) || PyObject_Size(AT(partition, partition_waiters))
        || PyObject_Size(AT(partition, partition_local_waiters))
        || !whole(AT(log, log_recovery_point), &synced) || !whole(AT(log, log_flush_messages), &flush_messages)
        || !whole(AT(AT(log, log_active), segment_base), &base))
        return tell(flusher, name_appended, partition);
    if (put_whole(partition, partition_durable, end_offset) < 0
        || put_whole(partition, partition_watermark, end_offset) < 0 || wake_readers(lane, partition, end_offset) < 0)
        return -1;
    return synced < base || end_offset - synced >= flush_messages ? tell(flusher, name_flush, partition) : 0;
}

/* Whoever else was woken by this read is answered before the producer. */
static int settle_due(const Lane *lane)
{
    PyObject *due = AT(lane->connections, connections_due);
    if (!PyList_CheckExact(due) || PyList_GET_SIZE(due) == 0 || AT(lane->connections, connections_at_end) != Py_True)
        return 0;
    return tell(lane->connections, name_settle_due, NULL);
}

/* The bytes of the answer. */
static PyObject *produced(const Request *request, const Produce *produce, PyObject *partition, int64_t base_offset)
{
    int64_t start;
    if (!whole(AT(AT(partition, partition_log), log_start), &start)) {
        PyErr_SetString(PyExc_TypeError, "start_offset is no number");
        return NULL;
    }
    PyObject *answer =
        PyBytes_FromStringAndSize(NULL, PRODUCED_HEAD_BYTES + produce->name_bytes + PRODUCED_PART_BYTES);
    if (answer == NULL)
        return NULL;
    uint8_t *at = (uint8_t *)PyBytes_AS_STRING(answer);
    at = write_big(at, PyBytes_GET_SIZE(answer) - 4, 4);
    at = write_big(at, request->correlation_id, 4);
    *at++ = 0; /* tags of the header */
    *at++ = ONE;
    memcpy(at, produce->name, produce->name_bytes);
    at += produce->name_bytes;
    *at++ = ONE;
    at = write_big(at, produce->index, 4);
    at = write_big(at, 0, 2);
    at = write_big(at, base_offset, 8);
    at = write_big(at, -1, 8); /* append time */
    at = write_big(at, start, 8);
    *at++ = NONE;             /* record errors */
    at = write_big(at, 0, 3); /* error message, tags of the partition and of the topic */
    write_big(at, 0, 5);      /* throttle time, tags */
    return answer;
}

/* `Connection.reply` */
static int reply(PyObject *connection, PyObject *answer)
{
    if (AT(connection, connection_closed) == Py_True)
        return 0;
    PyObject *corked = AT(connection, connection_corked);
    if (PyObject_Size(AT(connection, connection_owed)) == 0)
        return PyList_CheckExact(corked) ? PyList_Append(corked, answer) : send_part(connection, answer);
    PyObject *parts = PyList_New(1);
    if (parts == NULL)
        return -1;
    PyList_SET_ITEM(parts, 0, Py_NewRef(answer));
    int failed = tell(connection, name_reply, parts);
    Py_DECREF(parts);
    return failed;
}

/* Owe the answer until the disk has the records. */
static int owe_produced(const Lane *lane, const Request *request, const Produce *produce, PyObject *partition,
                        int64_t base, int64_t end)
{
    PyObject *pending = PyObject_CallFunction(
        lane->durable, "Oy#iLLii", partition, (const char *)produce->name, produce->name_bytes, (int)produce->index,
        (long long)base, (long long)end, (int)produce->acks, (int)request->version);
    if (pending == NULL)
        return -1;
    PyObject *done = NULL;
    if (settle_due(lane) == 0) {
        PyObject *number = PyLong_FromLong(request->correlation_id), *moment = PyFloat_FromDouble(request->began);
        if (number != NULL && moment != NULL)
            done = PyObject_CallMethodObjArgs(pending, name_attach, request->connection, lane->dispatcher,
                                              request->route, number, moment, NULL);
        Py_XDECREF(number);
        Py_XDECREF(moment);
    }
    Py_XDECREF(done);
    Py_DECREF(pending);
    return done == NULL ? -1 : 0;
}

/* What follows an append that has succeeded. */
static int finish_produce(const Lane *lane, const Request *request, const Produce *produce, PyObject *partition,
                          int64_t base)
{
    int64_t end, durable;
    if (!whole(AT(AT(partition, partition_log), log_end), &end)) {
        PyErr_SetString(PyExc_TypeError, "end_offset is no number");
        return -1;
    }
    if (add(partition, partition_bytes_in, produce->records_bytes) < 0
        || add(partition, partition_messages_in, end - base) < 0 || flush(lane, partition, end) < 0
        || add(partition, partition_requests, 1) < 0)
        return -1;
    if (!whole(AT(partition, partition_durable), &durable) || durable < end)
        return owe_produced(lane, request, produce, partition, base, end);
    if (settle_due(lane) < 0)
        return -1;
    PyObject *answer = produced(request, produce, partition, base);
    int failed = answer == NULL || reply(request->connection, answer) < 0;
    Py_XDECREF(answer);
    return failed ? -1 : took_since(lane, request->route, request->began);
}

static Served serve_produce(const Lane *lane, const Request *request)
{
    Produce produce;
    int64_t base, now;
    if (request->version < PRODUCE_SINCE || AT(request->route, route_express) == Py_None
        || !read_produce(request, &produce))
        return NOT_OURS;
    PyObject *partition = find_produced(lane, request, &produce);
    if (partition == NULL)
        return PyErr_Occurred() ? BROKEN : NOT_OURS;
    if (now_ms(lane, &now) < 0)
        return BROKEN;
    Py_INCREF(partition);
    Outcome outcome = append_plain(AT(partition, partition_log), produce.records, produce.records_bytes,
                                   AT(partition, partition_epoch), now, &base);
    Served served = outcome == LEFT ? NOT_OURS : BROKEN;
    if (outcome == STORED && finish_produce(lane, request, &produce, partition, base) == 0)
        served = SERVED;
    produces_served += served == SERVED;
    Py_DECREF(partition);
    return served;
}

#endif
