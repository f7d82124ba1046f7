/* A pass over the records of a batch, a piece at a time, as `record_walk.py` makes it: the two agree on every input.
 *
 * V1  Nothing is kept but where the pass stands, so a batch may come in pieces of any size.
 * V2  No byte is read outside of a piece, whatever the lengths in the records say.
 * V3  A pass that has found a fault, or the record it looked for, reads no further.
 */
#ifndef OTTLA_WALK_H
#define OTTLA_WALK_H

#include <stdint.h>
#include <stddef.h>

#define NO_TIMESTAMP (-1)
#define BAD_RECORDS_MAX 100 /* that are named */

/* The numbers are those of `record_walk.Fault`. */
typedef enum { SOUND, LONG_NUMBER, BAD_SIZE, BAD_FIELDS, BAD_HEADERS, BAD_OFFSET, BYTES_LEFT, RECORDS_MISSING } Fault;

typedef enum { AT_SIZE, AT_ATTRIBUTES, AT_TIME, AT_OFFSET, AT_KEY, AT_VALUE, AT_HEADERS, AT_NAME, AT_CONTENT, AT_END } Field;

typedef struct {
    /* What is asked. */
    int64_t count, base_time, append_time, earliest, latest, find_low, find_high, find_delta;
    int is_append_time, is_dense, is_keyed;
    /* What was found. */
    Fault fault;
    int found, is_late, bad_count;
    int64_t index, max_time, found_time, found_delta;
    int64_t bad[BAD_RECORDS_MAX];
    /* Where the pass stands. */
    Field field;
    int shift, keyless;
    uint64_t value, left, skip, headers;
    int64_t time, delta;
} Walk;

/* Everything but what is asked. */
static inline void walk_begin(Walk *walk)
{
    walk->fault = SOUND;
    walk->found = walk->is_late = walk->bad_count = 0;
    walk->index = 0;
    walk->max_time = NO_TIMESTAMP;
    walk->found_time = walk->found_delta = -1;
    walk->field = AT_SIZE;
    walk->shift = walk->keyless = 0;
    walk->value = walk->left = walk->skip = walk->headers = 0;
    walk->time = walk->delta = 0;
}

/* A record is whole: look at what it says. */
static inline void walk_record(Walk *walk)
{
    if (walk->left) {
        walk->fault = BAD_FIELDS;
        return;
    }
    int64_t time = walk->is_append_time ? walk->append_time : walk->time;
    int late = time != NO_TIMESTAMP && (time < walk->earliest || time > walk->latest);
    if ((walk->is_keyed && walk->keyless) || late) {
        if (walk->bad_count < BAD_RECORDS_MAX)
            walk->bad[walk->bad_count++] = walk->index;
        if (!(walk->is_keyed && walk->keyless))
            walk->is_late = 1;
    }
    if (time > walk->max_time)
        walk->max_time = time;
    if (time >= walk->find_low && time <= walk->find_high && walk->delta >= walk->find_delta) {
        walk->found = 1;
        walk->found_time = time;
        walk->found_delta = walk->delta;
    }
    walk->index++;
    walk->field = AT_SIZE;
}

/* So many bytes of the record are passed over. */
static inline void walk_over(Walk *walk, uint64_t number, Field next)
{
    uint64_t size = number & 1 ? 0 : number >> 1;
    if (size > walk->left) {
        walk->fault = BAD_FIELDS;
        return;
    }
    walk->left -= size;
    walk->skip = size;
    walk->field = next;
}

/* A number is whole: take it for what it is. */
static inline void walk_number(Walk *walk, uint64_t number)
{
    int64_t plain = (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
    switch (walk->field) {
    case AT_SIZE:
        if (number & 1)
            walk->fault = BAD_SIZE;
        walk->left = number >> 1;
        walk->field = AT_ATTRIBUTES;
        break;
    case AT_TIME:
        walk->time = (int64_t)((uint64_t)walk->base_time + (uint64_t)plain); /* wraps, as in Java */
        walk->field = AT_OFFSET;
        break;
    case AT_OFFSET:
        if (walk->is_dense && plain != walk->index)
            walk->fault = BAD_OFFSET;
        walk->delta = plain;
        walk->field = AT_KEY;
        break;
    case AT_KEY:
        walk->keyless = number & 1;
        walk_over(walk, number, AT_VALUE);
        break;
    case AT_VALUE:
        walk_over(walk, number, AT_HEADERS);
        break;
    case AT_HEADERS:
        walk->headers = number >> 1;
        if (number & 1 || walk->headers > walk->left)
            walk->fault = BAD_HEADERS;
        walk->field = walk->headers ? AT_NAME : AT_END;
        break;
    case AT_NAME:
        if (number & 1)
            walk->fault = BAD_HEADERS;
        else
            walk_over(walk, number, AT_CONTENT);
        break;
    default:
        walk->headers--;
        walk_over(walk, number, walk->headers ? AT_NAME : AT_END);
    }
}

/* Go on with the next piece; 0 once there is no need for more. */
static inline int walk_feed(Walk *walk, const uint8_t *at, size_t size)
{
    const uint8_t *end = at + size;
    while (walk->fault == SOUND && !walk->found) {
        if (walk->skip) {
            uint64_t here = (uint64_t)(end - at) < walk->skip ? (uint64_t)(end - at) : walk->skip;
            at += here;
            walk->skip -= here;
            if (walk->skip)
                return 1;
        }
        if (walk->field == AT_END) {
            walk_record(walk);
            continue;
        }
        if (at == end)
            return 1;
        if (walk->index == walk->count) {
            walk->fault = BYTES_LEFT;
            break;
        }
        uint8_t byte = *at++;
        if (walk->field != AT_SIZE && walk->left-- == 0) {
            walk->fault = BAD_FIELDS;
            break;
        }
        if (walk->field == AT_ATTRIBUTES) {
            walk->field = AT_TIME;
            continue;
        }
        walk->value |= (uint64_t)(byte & 0x7f) << walk->shift;
        if (byte < 0x80) {
            uint64_t number = walk->value;
            walk->value = 0;
            walk->shift = 0;
            walk_number(walk, number);
        } else if ((walk->shift += 7) > (walk->field == AT_TIME ? 63 : 28))
            walk->fault = LONG_NUMBER;
    }
    return 0;
}

/* Say that no more comes. */
static inline Fault walk_end(Walk *walk)
{
    if (walk->fault == SOUND && !walk->found && (walk->index != walk->count || walk->field != AT_SIZE || walk->shift))
        walk->fault = RECORDS_MISSING;
    return walk->fault;
}

#endif
