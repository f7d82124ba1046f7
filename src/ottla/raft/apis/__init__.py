"""The requests of the quorum, one API a file: `ask` makes the request, `answer` serves it, `take` hears the answer."""
