"""A second broker, plain and slow, to hold the first one to.

It was written from the specification alone, without a look at ``quorate.maintenance.model`` or ``.rules``: state is
lists, every question walks all of it again, nothing is counted ahead, indexed or undone. ``world`` is the cluster and
what was decided, ``locks`` says who holds an item, ``checks`` has the rules in the order in which they are asked,
``volumes`` those of a ReplicatedVolume, ``asking`` weighs a whole request, ``life`` is the broker's life: requests,
permissions, notifications, time; ``walle`` its tasks. It borrows the product's nouns (``nouns``, ``messages``,
``entries``), which say nothing about rules.

``clusters`` makes small random clusters and questions. ``test_rules`` weighs thousands of situations by both,
``test_histories`` plays whole histories into both and takes down for real what is permitted (``safety``),
``test_examples`` has what the texts say in so many words, ``test_differences`` where both once differed and who was
right. ``test_kills`` and ``test_rolling_restart`` are about the broker alone: it dies at every write, and restarts
clusters through its real interfaces (``served``).

With ``QUORATE_ORACLE=full`` in the environment all of it is played many times over.
"""
