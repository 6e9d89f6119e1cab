"""A second broker, plain and slow, to hold the first one to.

It was written from the specification alone, without a look at ``quorate.maintenance.model`` or ``.rules``: state is
lists, every question walks all of it again, nothing is counted ahead, indexed or undone. ``world`` is the cluster and
what was decided, ``locks`` says who holds an item, ``checks`` has the rules in the order in which they are asked,
``volumes`` those of a ReplicatedVolume, ``asking`` weighs a whole request, ``life`` is the broker's life: requests,
permissions, notifications, time. The tests play random histories into both and compare every answer.

It borrows the product's nouns (``nouns``, ``messages``, ``entries``), which say nothing about rules.
"""
