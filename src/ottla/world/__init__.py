"""The four doors to the world: Clock, Disk, Network and Entropy.

Everything outside these modules that needs time, files, sockets or chance is handed one of these objects, so that a
simulator can hand over others. Injection happens at the handle (a `File`, a transport), so it costs no frame.
"""
