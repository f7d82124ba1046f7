/* What the files of the lane share: the classes it looks into, the lane itself, and time. */
#ifndef OTTLA_LANE_H
#define OTTLA_LANE_H

#include "../wire/_slots.h"
#include "../channel/_frames.h"
#include "../log/_plain.h"

#include <time.h>

#define ID_BYTES 16
#define ONE 2 /* as a compact array counts */
#define NONE 1

static int64_t open_requests_max, buckets_count; /* of `connection.py`, of `dispatch.py` */

static PyTypeObject *ConnectionType, *ConnectionsType, *SessionType, *PartitionType, *LogType, *SegmentType, *TailType,
    *ProducersType, *FetchType, *FetchSessionType, *WantedType, *PendingType, *RouteType, *OsFlusherType,
    *RealClockType;
static PyObject *name_wake, *name_report_bug, *name_appended, *name_flush, *name_settle_due, *name_reply, *name_attach, *name_cancel,
    *name_popleft, *name_append, *name_failed, *name_finish, *name_monotonic, *name_now_ms;
static PyObject *no_text, *minus_one, *any_watermark;
static PlainAppend append_plain;
static FramesSend send_part;

static Py_ssize_t connection_closed, connection_owed, connection_session, connection_corked, connection_stalled,
    connection_on_close, connection_pace, connection_listener, connections_due, connections_at_end, session_client,
    partition_topic, partition_topic_id, partition_index, partition_refusal, partition_leadership, partition_tailers, partition_log, partition_epoch,
    partition_bytes_in, partition_messages_in, partition_requests, partition_durable, partition_watermark,
    partition_waiters, partition_local_waiters, partition_readers, partition_fetches, partition_bytes_out,
    partition_flusher, log_end, log_start, log_active, log_tail, log_producers, log_recovery_point, log_flush_messages,
    segment_base, tail_newest, tail_newest_offset, producers_ongoing, producers_unreplicated, fetch_alone, fetch_broker,
    fetch_by_id, fetch_bytes_max, fetch_bytes_min, fetch_committed, fetch_connection, fetch_full, fetch_gathered, fetch_no_room, fetch_grown,
    fetch_growth, fetch_parked, fetch_pending, fetch_session, fetch_timer, fetch_wait_ms, fetch_wanted,
    fetch_bytes_read, fetch_came_by, fetch_follower, fetch_leader_only, fetch_listener, fetch_rack, fetch_settled,
    interest_by_id, interest_due, interest_epoch, interest_follows, interest_number, interest_parked, interest_touched,
    interest_wanted, wanted_bytes_max, wanted_fetched, wanted_watermark, wanted_key, wanted_known, wanted_epoch, wanted_offset,
    wanted_own_start, wanted_partition, wanted_start, pending_began, pending_dispatcher, pending_message, pending_route,
    pending_then, pending_connection, pending_correlation, pending_parts, route_count, route_seconds, route_buckets,
    route_express;

static const Class CLASSES[] = {
    {"Connection", &ConnectionType}, {"Connections", &ConnectionsType}, {"Session", &SessionType},
    {"Partition", &PartitionType}, {"Log", &LogType}, {"Segment", &SegmentType}, {"Tail", &TailType},
    {"Producers", &ProducersType}, {"Fetch", &FetchType}, {"FetchSession", &FetchSessionType}, {"Wanted", &WantedType},
    {"Pending", &PendingType}, {"Route", &RouteType}, {"OsFlusher", &OsFlusherType},
    {"RealClock", &RealClockType}, {NULL},
};

static const Slot SLOTS[] = {
    {"Connection", "closed", &connection_closed}, {"Connection", "owed", &connection_owed},
    {"Connection", "session", &connection_session}, {"Connection", "_corked", &connection_corked},
    {"Connection", "_stalled", &connection_stalled}, {"Connection", "on_close", &connection_on_close},
    {"Connection", "pace", &connection_pace}, {"Connection", "listener", &connection_listener},
    {"Connections", "due", &connections_due}, {"Connections", "at_end", &connections_at_end},
    {"Session", "client_id", &session_client},
    {"Partition", "topic", &partition_topic}, {"Partition", "topic_id", &partition_topic_id},
    {"Partition", "index", &partition_index}, {"Partition", "refusal", &partition_refusal},
    {"Partition", "leadership", &partition_leadership}, {"Partition", "tailers", &partition_tailers},
    {"Partition", "log", &partition_log}, {"Partition", "leader_epoch", &partition_epoch},
    {"Partition", "bytes_in", &partition_bytes_in}, {"Partition", "messages_in", &partition_messages_in},
    {"Partition", "produce_requests", &partition_requests}, {"Partition", "durable_offset", &partition_durable},
    {"Partition", "high_watermark", &partition_watermark}, {"Partition", "_waiters", &partition_waiters},
    {"Partition", "_local_waiters", &partition_local_waiters}, {"Partition", "readers", &partition_readers},
    {"Partition", "fetch_requests", &partition_fetches}, {"Partition", "bytes_out", &partition_bytes_out},
    {"Partition", "_flusher", &partition_flusher},
    {"Log", "end_offset", &log_end}, {"Log", "start_offset", &log_start}, {"Log", "_active", &log_active},
    {"Log", "_tail", &log_tail}, {"Log", "_producers", &log_producers}, {"Log", "recovery_point", &log_recovery_point},
    {"Log", "_flush_messages", &log_flush_messages}, {"Segment", "base_offset", &segment_base},
    {"Tail", "newest", &tail_newest}, {"Tail", "newest_offset", &tail_newest_offset},
    {"Producers", "ongoing", &producers_ongoing}, {"Producers", "unreplicated", &producers_unreplicated},
    {"Fetch", "_alone", &fetch_alone}, {"Fetch", "_broker", &fetch_broker}, {"Fetch", "_by_id", &fetch_by_id},
    {"Fetch", "_bytes_max", &fetch_bytes_max}, {"Fetch", "_bytes_min", &fetch_bytes_min},
    {"Fetch", "_committed", &fetch_committed}, {"Fetch", "_connection", &fetch_connection},
    {"Fetch", "_full", &fetch_full}, {"Fetch", "_gathered", &fetch_gathered}, {"Fetch", "_no_room", &fetch_no_room}, {"Fetch", "_grown", &fetch_grown}, {"Fetch", "_growth", &fetch_growth},
    {"Fetch", "_parked", &fetch_parked}, {"Fetch", "_pending", &fetch_pending}, {"Fetch", "_session", &fetch_session},
    {"Fetch", "_timer", &fetch_timer}, {"Fetch", "_wait_ms", &fetch_wait_ms}, {"Fetch", "_wanted", &fetch_wanted},
    {"Fetch", "bytes_read", &fetch_bytes_read}, {"Fetch", "came_by", &fetch_came_by},
    {"Fetch", "follower", &fetch_follower}, {"Fetch", "leader_only", &fetch_leader_only},
    {"Fetch", "listener", &fetch_listener}, {"Fetch", "rack", &fetch_rack}, {"Fetch", "settled", &fetch_settled},
    {"FetchSession", "by_id", &interest_by_id}, {"FetchSession", "due", &interest_due},
    {"FetchSession", "epoch", &interest_epoch}, {"FetchSession", "follows", &interest_follows},
    {"FetchSession", "id", &interest_number}, {"FetchSession", "parked", &interest_parked},
    {"FetchSession", "touched_ms", &interest_touched}, {"FetchSession", "wanted", &interest_wanted},
    {"Wanted", "bytes_max", &wanted_bytes_max}, {"Wanted", "fetched_epoch", &wanted_fetched},
    {"Wanted", "high_watermark", &wanted_watermark}, {"Wanted", "key", &wanted_key},
    {"Wanted", "known_watermark", &wanted_known}, {"Wanted", "leader_epoch", &wanted_epoch},
    {"Wanted", "offset", &wanted_offset}, {"Wanted", "own_start_offset", &wanted_own_start},
    {"Wanted", "partition", &wanted_partition}, {"Wanted", "start_offset", &wanted_start},
    {"Pending", "_began", &pending_began}, {"Pending", "_dispatcher", &pending_dispatcher},
    {"Pending", "_message", &pending_message}, {"Pending", "_route", &pending_route}, {"Pending", "_then", &pending_then},
    {"Pending", "connection", &pending_connection}, {"Pending", "correlation_id", &pending_correlation},
    {"Pending", "parts", &pending_parts},
    {"Route", "count", &route_count}, {"Route", "seconds", &route_seconds}, {"Route", "buckets", &route_buckets},
    {"Route", "express", &route_express}, {NULL},
};

typedef struct {
    PyObject_HEAD
    vectorcallfunc call;
    PyObject *general;     /* Dispatcher.serve */
    PyObject *dispatcher;
    PyObject *routes;      /* by key << 16 | version */
    PyObject *broker;
    PyObject *connections;
    PyObject *call_later;
    PyObject *by_name, *by_id;
    PyObject *sessions;    /* of fetches, by their ids */
    PyObject *internal;    /* names of topics that are not for everybody */
    PyObject *durable;     /* makes the answer that waits for the disk */
    PyObject *clock;
    int is_real;           /* whether the clock is the machine's, which is read without Python */
    int64_t fetch_bytes_max;
} Lane;

/* A request, as far as its header says. */
typedef struct {
    PyObject *connection, *route;
    int16_t key, version;
    int32_t correlation_id;
    uint8_t *at, *end; /* what follows the header */
    double began;
} Request;

typedef enum { BROKEN = -1, NOT_OURS = 0, SERVED = 1 } Served;

/* How many requests were served here since the start, by kind: a simulation shows by these that it came this way. */
static int64_t produces_served, fetches_parked, readers_answered;

/* `Clock.monotonic` of a clock that is not the machine's; -1 with an error set. */
static int ask_monotonic(const Lane *lane, double *moment)
{
    PyObject *told = PyObject_CallMethodNoArgs(lane->clock, name_monotonic);
    *moment = told == NULL ? -1 : PyFloat_AsDouble(told);
    Py_XDECREF(told);
    return *moment == -1 && PyErr_Occurred() ? -1 : 0;
}

/* `Clock.now_ms` of a clock that is not the machine's; -1 with an error set. */
static int ask_now_ms(const Lane *lane, int64_t *moment)
{
    PyObject *told = PyObject_CallMethodNoArgs(lane->clock, name_now_ms);
    *moment = told == NULL ? -1 : PyLong_AsLongLong(told);
    Py_XDECREF(told);
    return *moment == -1 && PyErr_Occurred() ? -1 : 0;
}

static inline int monotonic(const Lane *lane, double *moment)
{
    if (!lane->is_real)
        return ask_monotonic(lane, moment);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    *moment = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    return 0;
}

static inline int now_ms(const Lane *lane, int64_t *moment)
{
    if (!lane->is_real)
        return ask_now_ms(lane, moment);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    *moment = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    return 0;
}

/* `Route.took` */
static int took(PyObject *route, double seconds)
{
    PyObject *buckets = AT(route, route_buckets), *sum = AT(route, route_seconds);
    int64_t micros = (int64_t)(seconds * 1e6), count;
    int bucket = micros <= 0 ? 0 : 64 - __builtin_clzll((uint64_t)micros);
    if (bucket >= buckets_count)
        bucket = (int)buckets_count - 1;
    if (!whole(PyList_GET_ITEM(buckets, bucket), &count)) {
        PyErr_SetString(PyExc_OverflowError, "a counter has no room left");
        return -1;
    }
    PyObject *more = PyLong_FromLongLong(count + 1);
    if (more == NULL || PyList_SetItem(buckets, bucket, more) < 0 || add(route, route_count, 1) < 0)
        return -1;
    return put(route, route_seconds, PyFloat_FromDouble(PyFloat_AsDouble(sum) + seconds));
}

/* `Route.took`, for what began at a moment and ends now. */
static int took_since(const Lane *lane, PyObject *route, double began)
{
    double now;
    return monotonic(lane, &now) < 0 ? -1 : took(route, now - began);
}

/* A partition that is awake, borrowed; NULL when there is none, or with an error set. */
static PyObject *partition_by(PyObject *table, PyObject *key)
{
    PyObject *partition = key == NULL ? NULL : PyDict_GetItemWithError(table, key);
    return partition != NULL && Py_IS_TYPE(partition, PartitionType) ? partition : NULL;
}

/* Call a method for what it does. */
static inline int tell(PyObject *object, PyObject *name, PyObject *argument)
{
    PyObject *done = argument == NULL ? PyObject_CallMethodNoArgs(object, name)
                                      : PyObject_CallMethodOneArg(object, name, argument);
    Py_XDECREF(done);
    return done == NULL ? -1 : 0;
}

#endif
