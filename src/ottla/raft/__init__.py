"""The Raft of the metadata quorum as pure code: events go in, and what to write and to say comes out."""
