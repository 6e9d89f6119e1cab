"""The drbd.conf language as drbdadm 9.22 reads it: a reader of its own, sharing nothing with what writes the files.

``lexer`` cuts a text into tokens, ``options`` knows every option's kind, range and default, ``parser`` builds the
``model``, ``configuration`` puts several files together, finds what clashes between them, and says what one host is to
do. What the real one does not catch (a last brace missing, a disk that is not there, an unknown algorithm, a file
without this host) is not caught here either.
"""
