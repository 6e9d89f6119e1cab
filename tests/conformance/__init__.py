"""One suite for every engine: the real kube-apiserver is the oracle, a difference is a bug of the embedded one.

Two levels. ``test_store_*`` speak to the ``Store`` interface and run on three targets: the embedded engine in this
process, the same through its REST facade (and our Kubernetes client), and a real kube-apiserver. ``scenarios/`` are
scripts of raw HTTP requests; what the real server answered to each is kept in ``recorded/``, with uids, versions
and times renamed. ``test_recorded`` plays every script to the facade and to the real server and compares: the real
one word for word (so a recording cannot go stale), the facade in everything but the wording of messages.

To record anew after changing a script: ``QUORATE_RECORD=1 pytest tests/conformance/test_recorded.py``.
"""
