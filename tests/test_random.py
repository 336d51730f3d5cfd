"""The random stream: reproducible with a seed, secret and never repeated without (R15)."""

import copy
import multiprocessing
import os
import pickle
import select
import sys
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegsynth.random import RandomStream, Words
from significance import bonferroni, fits


def words_of(stream, count=16, number=0):
    return stream.substream(number).take(count).tolist()


# Seeds and substreams


def test_a_seed_fixes_every_word():
    assert words_of(RandomStream(7)) == words_of(RandomStream(7))
    assert words_of(RandomStream("seven")) == words_of(RandomStream("seven"))


def test_seeded_words_stay_the_same_from_version_to_version():
    assert RandomStream(0).substream(0).take(2).tolist() == [
        15450161765276127520,
        6189217963904379542,
    ]


def test_different_seeds_give_different_words():
    streams = [RandomStream(seed) for seed in (0, 1, -1, 10**40, "0", "1", "")]
    assert len({tuple(words_of(stream)) for stream in streams}) == len(streams)


def test_substreams_of_one_key_share_no_word():
    stream = RandomStream(1)
    words = [w for n in (0, 1, 2, 255, 2**32, 2**63 - 1) for w in words_of(stream, 1000, n)]
    assert len(set(words)) == len(words)


def test_automatic_substreams_follow_each_other_and_stay_clear_of_numbered_ones():
    stream, twin = RandomStream(1), RandomStream(1)
    first, second = stream.substream().take(4).tolist(), stream.substream().take(4).tolist()
    assert first != second
    assert twin.substreams(2) == 1 << 63
    assert first == words_of(twin, 4, 1 << 63)
    assert second == words_of(twin, 4, (1 << 63) + 1)
    assert twin.substreams(1) == (1 << 63) + 2


@given(sizes=st.lists(st.integers(0, 300), max_size=8))
def test_words_do_not_depend_on_how_they_are_taken(sizes):
    apart = RandomStream(3).substream(5)
    pieces = [apart.take(size) for size in sizes]
    whole = RandomStream(3).substream(5).take(sum(sizes))
    assert np.array_equal(np.concatenate([*pieces, whole[:0]]), whole)


def test_a_long_take_equals_many_short_ones():
    apart = RandomStream(3).substream(5)
    whole = RandomStream(3).substream(5).take(20_001)
    parts = [apart.take(size) for size in (8191, 1, 8193, 3616)]
    assert np.array_equal(np.concatenate(parts), whole)


def test_only_a_seeded_stream_says_so():
    assert RandomStream(0).seeded
    assert RandomStream("").seeded
    assert not RandomStream().seeded


def test_two_secure_streams_differ():
    assert words_of(RandomStream()) != words_of(RandomStream())


def test_global_seeds_change_nothing():
    drawn = []
    for _ in range(2):
        np.random.seed(0)
        drawn.append(words_of(RandomStream()))
    assert drawn[0] != drawn[1]
    before = np.random.get_state()[1].tolist()
    RandomStream(1).substream().below(10)
    assert np.random.get_state()[1].tolist() == before


# Uniform integers


class ScriptedWords(Words):
    """Words from a list, to enumerate what `below` makes of each."""

    def __init__(self, script):
        super().__init__(RandomStream(0), 0)
        self._script = iter(script)

    def _word(self):
        return next(self._script)


class ModuloWords(ScriptedWords):
    """A broken twin: the remainder of the leading bits, nothing rejected."""

    def below(self, bound):
        bits = (bound - 1).bit_length()
        return (self._word() >> (64 - bits)) % bound if bits else 0


def hits(kind, bound):
    """How often each integer comes out when every pattern of leading bits comes once."""
    bits = (bound - 1).bit_length()
    found = Counter()
    for pattern in range(1 << bits):
        try:
            found[kind([pattern << (64 - bits)]).below(bound)] += 1
        except StopIteration:
            found["rejected"] += 1
    rejected = found.pop("rejected", 0)
    return found, rejected


def is_exact(kind, bound):
    found, rejected = hits(kind, bound)
    each = set(found.values())
    return set(found) == set(range(bound)) and len(each) == 1 and rejected < bound


@pytest.mark.parametrize("bound", [*range(1, 34), 63, 64, 65, 255, 256, 257])
def test_every_integer_below_the_bound_has_the_same_number_of_words(bound):
    assert is_exact(ScriptedWords, bound)


@pytest.mark.parametrize("bound", [3, 5, 33, 257])
def test_a_remainder_without_rejection_is_caught(bound):
    assert not is_exact(ModuloWords, bound)


@given(
    bound=st.one_of(st.integers(1, 2**70), st.integers(2**63, 2**300)),
    words=st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8),
)
def test_large_integers_are_leading_bits_of_whole_words(bound, words):
    bits = (bound - 1).bit_length()
    used = max(1, -(-bits // 64))
    expected = None
    for start in range(0, len(words) - used + 1, used):
        value = 0
        for word in words[start : start + used]:
            value = value * 2**64 + word
        value //= 2 ** (64 * used - bits)
        if value < bound:
            expected = value
            break
    if expected is None:
        with pytest.raises(StopIteration):
            ScriptedWords(words).below(bound)
    else:
        assert ScriptedWords(words).below(bound) == expected


@pytest.mark.parametrize("bound", [1, 2, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 10**30, 10**300])
def test_any_bound_works(bound):
    words = RandomStream(2).substream()
    assert all(0 <= words.below(bound) < bound for _ in range(50))


@pytest.mark.parametrize("bound", [0, -1])
def test_an_empty_range_is_refused(bound):
    with pytest.raises(ValueError, match="positive"):
        RandomStream(2).substream().below(bound)


BOUNDS = (7, 10, 1000, 2**64, 10**30)
DRAWS = 20_000


def decile_counts(draw, bound):
    """Counts of min(bound, 10) equal slices; 7 and the powers of ten divide exactly."""
    slices = 7 if bound == 7 else 8 if bound == 2**64 else 10
    return np.bincount([draw() * slices // bound for _ in range(DRAWS)], minlength=slices)


@pytest.mark.parametrize("bound", BOUNDS)
def test_integers_are_uniform(bound):
    """False alarms: ALPHA over all bounds together."""
    words = RandomStream().substream()
    counts = decile_counts(lambda: words.below(bound), bound)
    assert fits(counts, [1 / len(counts)] * len(counts), alpha=bonferroni(len(BOUNDS)))


def test_integers_by_remainder_are_rejected_by_the_same_check():
    words = RandomStream().substream()
    counts = decile_counts(lambda: words.below(8) % 7, 7)
    assert not fits(counts, [1 / 7] * 7, alpha=bonferroni(len(BOUNDS)))


# Secrecy


@pytest.mark.parametrize("make", [RandomStream, lambda: RandomStream().substream()])
@pytest.mark.parametrize(
    "duplicate", [copy.copy, copy.deepcopy, pickle.dumps, lambda x: copy.deepcopy([x])]
)
def test_nothing_can_be_copied_or_pickled(make, duplicate):
    with pytest.raises(TypeError, match="repeat"):
        duplicate(make())


@pytest.mark.parametrize("stream", [RandomStream(), RandomStream(5)], ids=["secure", "seeded"])
def test_the_key_is_not_shown(stream):
    words = stream.substream()
    key = stream._key
    for text in (repr(stream), str(stream), f"{stream}", repr(words), str(words)):
        assert key.hex() not in text
        assert repr(key)[2:-1] not in text
    assert repr(stream) in {"RandomStream(secure)", "RandomStream(seeded)"}


# Forks and threads


def in_child(draw, seconds=60):
    """What `draw` returns in a forked child, as a list of integers; only a lock-up takes long."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        # Newer interpreters warn of forking beside threads; the child here only draws.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        try:
            os.write(write, pickle.dumps(draw()))
        finally:
            os._exit(0)
    os.close(write)
    try:
        if not select.select([read], [], [], seconds)[0]:
            os.kill(child, 9)
            raise AssertionError("the child did not answer")
        return pickle.loads(os.read(read, 1 << 16))
    finally:
        os.close(read)
        os.waitpid(child, 0)


def test_a_fork_gives_a_secure_stream_a_new_key():
    stream = RandomStream()
    children = [in_child(lambda: words_of(stream)) for _ in range(2)]
    parent = words_of(stream)
    assert len({tuple(words) for words in (parent, *children)}) == 3


def test_a_fork_gives_open_words_a_new_key():
    words = RandomStream().substream()
    words.take(3)
    children = [in_child(lambda: words.take(8).tolist()) for _ in range(2)]
    parent = words.take(8).tolist()
    assert len({tuple(drawn) for drawn in (parent, *children)}) == 3


def test_a_fork_throws_buffered_words_away():
    words = RandomStream().substream()
    words.below(10)
    assert 0 < words._position < len(words._buffer)
    children = [in_child(lambda: [words.below(2**64) for _ in range(8)]) for _ in range(2)]
    parent = [words.below(2**64) for _ in range(8)]
    assert len(set(parent) | set(children[0]) | set(children[1])) == 24


def test_a_grandchild_differs_from_its_parent():
    stream = RandomStream()

    def both():
        grandchild = in_child(lambda: words_of(stream))
        return [*grandchild, *words_of(stream)]

    words = [*in_child(both), *words_of(stream)]
    assert len(set(words)) == 48


def _send(stream, words, connection):
    connection.send((words_of(stream), [words.below(2**64) for _ in range(8)]))


def test_worker_processes_draw_their_own_words():
    context = multiprocessing.get_context("fork")
    stream = RandomStream()
    words = stream.substream()
    words.below(10)
    answers = []
    for _ in range(2):
        receiver, sender = context.Pipe(duplex=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            worker = context.Process(target=_send, args=(stream, words, sender))
            worker.start()
        answers.append(receiver.recv())
        worker.join()
    answers.append((words_of(stream), [words.below(2**64) for _ in range(8)]))
    drawn = [word for lists in answers for part in lists for word in part]
    assert len(set(drawn)) == len(drawn) == 72


def test_a_seeded_stream_is_the_same_after_a_fork():
    stream = RandomStream(4)
    words = stream.substream(1)
    words.below(10)

    def draw():
        return [*words_of(stream), *(words.below(2**64) for _ in range(8))]

    assert in_child(draw) == draw()


@pytest.mark.parametrize("seed", [None, 3])
def test_a_fork_beside_a_working_thread_does_not_lock_the_child_up(seed):
    stream = RandomStream(seed)
    with stream._lock:
        assert len(in_child(lambda: stream.substream().take(4).tolist())) == 4
    stream.substream()


def test_threads_never_get_the_same_substream():
    stream = RandomStream()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            firsts = list(pool.map(lambda _: int(stream.substream().take(1)[0]), range(2000)))
            ranges = list(pool.map(lambda _: stream.substreams(3), range(2000)))
    finally:
        sys.setswitchinterval(interval)
    assert len(set(firsts)) == 2000
    assert sorted(ranges) == [(1 << 63) + 2000 + 3 * n for n in range(2000)]


# Other processes


@pytest.mark.parametrize("skip", [0, 1, 2, 3, 1000, 1001, 2**40 + 1])
def test_words_can_be_skipped(skip):
    stream = RandomStream(7)
    whole = stream.substream(5).take(1010).tolist()
    found = stream.substream(5, skip=skip).take(4).tolist()
    if skip < 1000:
        assert found == whole[skip : skip + 4]
    assert found[1:] == stream.substream(5, skip=skip + 1).take(3).tolist()


def test_only_a_seeded_stream_can_be_shared():
    seeded, secure = RandomStream(7), RandomStream()
    twin = RandomStream.from_shared(seeded.shared_key)
    assert twin.seeded
    assert words_of(twin) == words_of(seeded)
    assert secure.shared_key is None
    fresh = [RandomStream.from_shared(secure.shared_key) for _ in range(2)]
    assert not any(stream.seeded for stream in fresh)
    assert len({tuple(words_of(stream)) for stream in (secure, *fresh)}) == 3
