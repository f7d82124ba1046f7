/* What `channel._frames` offers to other compiled parts, as a capsule. */
#ifndef OTTLA_FRAMES_H
#define OTTLA_FRAMES_H

#define FRAMES_CAPSULE "ottla.channel._frames.capsule"

/* Hand one buffer to the kernel at once where that can be, else to the transport, as `Connection._send` does; -1 with
 * an error set. */
typedef int (*FramesSend)(PyObject *connection, PyObject *part);

#endif
