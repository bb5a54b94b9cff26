"""Programs whose output depends on more than their input: data for test_referee_unsteady.py.

CHANCE, CLOCKS and ADDRESSES must be found out by the two validation runs. STEADY ones look like
them and are honest.
"""

# ruff: noqa: E501

from __future__ import annotations

CHANCE = {
    "random": "import random\ndef f(x): return random.random() < 0.5",
    "randint": "import random\ndef f(x): return random.randint(0, 1)",
    "two bits": "import random\ndef f(x): return random.getrandbits(1) ^ random.getrandbits(1)",
    "choice": "import random\ndef f(x): return random.choice('ab')",
    "shuffle": "import random\ndef f(x):\n    a = [0, 1]\n    random.shuffle(a)\n    return a",
    "gauss": "import random\ndef f(x): return random.gauss(0, 1) > 0",
    "a generator of its own": "import random\ndef f(x): return random.Random().random() < 0.5",
    "a generator seeded again": "import random\ndef f(x):\n    g = random.Random(1)\n    g.seed()\n    return g.getrandbits(1)",
    "seed without a seed": "import random\ndef f(x):\n    random.seed()\n    return random.random() < 0.5",
    "seed of None": "import random\ndef f(x):\n    random.seed(None)\n    return random.randrange(2)",
    "a subclass": "import random\nclass R(random.Random): pass\ndef f(x): return R().random() < 0.5",
    "the system's": "import random\ndef f(x): return random.SystemRandom().random() < 0.5",
    "secrets": "import secrets\ndef f(x): return secrets.randbelow(2)",
    "a token": "import secrets\ndef f(x): return secrets.token_bytes(1)[0] & 1",
    "urandom": "import random\ndef f(x): return random._os.urandom(1)[0] & 1",
    "urandom by another name": "import random\ndef f(x): return random._urandom(1)[0] & 1",
    "getrandom": "import random\ndef f(x): return random._os.getrandom(1)[0] & 1",
    "samples": "import statistics\ndef f(x): return statistics.NormalDist().samples(1)[0] > 0",
}

CLOCKS = {
    "today": "from datetime import date\ndef f(x): return date.today().year",
    "today's parity": "from datetime import date\ndef f(x): return date.today().day % 2",
    "now": "import datetime\ndef f(x): return datetime.datetime.now().hour",
    "now with a zone": "from datetime import datetime, timezone\ndef f(x): return datetime.now(timezone.utc).month",
    "utcnow": "from datetime import datetime\ndef f(x): return datetime.utcnow().minute % 2",
    "a datetime's today": "from datetime import datetime\ndef f(x): return datetime.today().weekday()",
    "by another name": "import datetime\ndef f(x): return getattr(datetime.datetime, 'no' + 'w')().year",
    "a subclass": "import datetime\nclass D(datetime.datetime): pass\ndef f(x): return D.now().second % 2",
    "queue's": "import queue\ndef f(x): return int(queue.time())",
    "time's": "import random\ndef f(x): return random._os.sys.modules['time'].time_ns() // 10 ** 9",
    "monotonic": "import random\ndef f(x): return int(random._os.sys.modules['time'].monotonic()) % 2",
    "perf_counter": "import random\ndef f(x): return int(random._os.sys.modules['time'].perf_counter_ns()) // 10 ** 9",
    "localtime": "import random\ndef f(x): return random._os.sys.modules['time'].localtime().tm_yday",
    "strftime": "import random\ndef f(x): return random._os.sys.modules['time'].strftime('%Y')",
    "ctime": "import random\ndef f(x): return random._os.sys.modules['time'].ctime()",
}

ADDRESSES = {
    "hash of itself": "def f(x): return hash(f)",
    "hash of a lambda": "def f(x): return hash(lambda: 0) % 9973",
    "hash of an object": "def f(x): return hash(object()) % 9973",
    "hash of a class": "def f(x):\n    class A: pass\n    return hash(A) % 9973",
    "hash of an instance": "class A:\n    def __init__(self): self.x = 1\ndef f(x): return hash(A()) % 9973",
    "hash of a bound builtin": "def f(x): return hash(x.append) % 9973",
    "hash of a generator": "def f(x): return hash(i for i in x) % 9973",
    "hash of an iterator": "def f(x): return hash(iter(x)) % 9973",
    "the end of an address": "def f(x): return str(f)[-6:-1]",
    "digits of an address": "def f(x): return sum(map(int, filter(lambda c: c in '0123456789', repr(f))))",
    "an address by formatting": "def f(x): return ('%s' % f)[-9:]",
    "an order of functions": "def f(x):\n    s = {(lambda i: lambda: i)(i) for i in range(20)}\n    return [g() for g in s]",
    "an order of instances": "class A:\n    def __init__(self, n): self.n = n\ndef f(x): return [a.n for a in {A(i) for i in range(20)}]",
    "identity": "def f(x): return id(f) % 1000003",
    "identity, one bit": "def f(x): return id(x) >> 4 & 1",
    "identity of a builtin": "def f(x): return id(len)",
}

SHOWN = {
    "a function": "def f(x): return str(f)",
    "an object": "def f(x): return [repr(object())]",
    "a method of a builtin": "def f(x): return str(''.join)",
    "a method": "class A:\n    def g(self): pass\ndef f(x): return f'{A().g}'",
    "upper case elsewhere": "def f(x): return str(f).replace('function', 'FUNCTION')",
}

FIXED = {
    "hash of None": "def f(x): return hash(None)",
    "hash of a type": "def f(x): return hash(int)",
    "hash of a builtin": "def f(x): return hash(len)",
    "a builtin's method": "def f(x): return str(''.join)[-5:]",
    "an order with None": "def f(x): return list(set([(1, None), (None, 2), (3, None), None, ('a', None)]))",
}

STEADY = {
    "a literal that looks like an address": "def f(x): return 'fault at 0xdeadbeef'",
    "a short one": "def f(x): return 'word at 0x10'",
    "an address given": "def f(x): return '<object at 0x7f31c02a3b50>'",
    "seeded": "import random\ndef f(x):\n    random.seed(7)\n    return random.random()",
    "a seeded generator": "import random\ndef f(x): return random.Random(7).sample(range(99), 5)",
    "seeded samples": "import statistics\ndef f(x): return statistics.NormalDist().samples(2, seed=1)",
    "a parameter called now": "import datetime\ndef f(x, now=3): return str(datetime.timedelta(days=now))",
    "a date": "from datetime import date, timedelta\ndef f(x): return str(date(2024, 2, 28) + timedelta(2))",
    "a time parsed": "from datetime import datetime\ndef f(x): return datetime.strptime('3/4/21', '%d/%m/%y').year",
    "a date written": "from datetime import date\ndef f(x): return date(2024, 2, 29).strftime('%A') + f'{date(2024, 2, 29):%B}'",
    "a time stamp": "from datetime import datetime, timezone\ndef f(x): return str(datetime.fromtimestamp(86400, timezone.utc))",
    "annotations of the future": "from __future__ import annotations\ndef f(x: Foo) -> Bar[Baz]: return len(x)",
    "a set of words": "def f(x): return list(set('to be or not to be'.split()))",
    "identity compared": "def f(x): return id(x) == id(x) and id(x) != id(f)",
    "hashes compared": "def f(x): return hash('a') == hash('a') and hash((1, 2)) == hash((1, 2))",
    "a dict of types": "def f(x): return [{int: 'i', str: 's', list: 'l'}[type(v)] for v in (1, 'a', [])]",
    "a clock that goes on": "import queue\ndef f(x):\n    a = queue.time()\n    return queue.time() > a",
    "chance that does not show": "import random\ndef f(x):\n    random.shuffle(x)\n    return sorted(x)",
}
