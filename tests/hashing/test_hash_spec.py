"""The hash function refuses what does not fit, and never changes between versions."""

import pytest

from pegsynth.errors import ParameterError
from pegsynth.methods.gibbs.spec import HashSpec, tail_codes

NAMES = ("age", "zip", "sex", "charge")
COUNTS = (1000, 100_000, 2, 1_000_000)
ALL = ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))


def of_heads(heads, tail_bits=1, counts=COUNTS):
    return HashSpec(NAMES, counts, tuple(h[:heads] for h in ALL), tail_bits)


def test_key_spaces_are_exact_integers():
    spec = of_heads(3)
    assert spec.key_space(0) == 2 * 100_000 * 2 * 1_000_000
    assert of_heads(0, 0).key_space(1) == 1


WIDE = ((1 << 21,) * 4, (1 << 21, 1 << 21, 1 << 22, 1 << 10), (2, 1 << 40, 1 << 30, 2))


@pytest.mark.parametrize("tail_bits", [1, 16])
@pytest.mark.parametrize("counts", WIDE)
def test_a_key_beyond_63_bits_names_the_feature_and_what_fits(counts, tail_bits):
    with pytest.raises(ParameterError) as caught:
        of_heads(3, tail_bits, counts)
    message = str(caught.value)
    target = next(i for i, name in enumerate(NAMES) if repr(name) in message)
    most = int(message.split("--heads ")[1].split(maxsplit=1)[0])
    own = [ALL[target] if i == target else () for i in range(4)]
    fitting, too_many = (tuple(h[:m] for h in own) for m in (most, most + 1))
    assert HashSpec(NAMES, counts, fitting, tail_bits).key_space(target) <= 2**63
    with pytest.raises(ParameterError, match=f"{NAMES[target]}.*--heads {most} or fewer"):
        HashSpec(NAMES, counts, too_many, tail_bits)


def test_exactly_63_bits_fit():
    counts = (2, 1 << 20, 1 << 20, 1 << 19)
    spec = HashSpec(NAMES, counts, ((1, 2, 3), (), (), ()), 4)
    assert spec.key_space(0) == 2**63
    with pytest.raises(ParameterError, match="63 bits"):
        HashSpec(NAMES, counts, ((1, 2, 3), (), (), ()), 5)


@pytest.mark.parametrize("tail_bits", [-1, 17])
def test_tail_bits_out_of_range(tail_bits):
    with pytest.raises(ParameterError, match="between 0 and 16"):
        of_heads(1, tail_bits)


@pytest.mark.parametrize("heads", [(0,), (1, 1), (2, 0)])
def test_heads_are_distinct_other_features(heads):
    with pytest.raises(ParameterError, match=r"'age'.*distinct others"):
        HashSpec(NAMES, COUNTS, (heads, (), (), ()), 1)


def test_tail_bits_of_every_category_are_fixed_for_good():
    """Model files hold keys: these numbers may never change."""
    assert tail_codes((2, 3, 1, 4), 16).tolist() == [
        *(57888, 37130),
        *(50220, 8259, 45936),
        *(59314,),
        *(20397, 33031, 2457, 9900),
    ]
    assert tail_codes((2, 3, 1, 4), 1).tolist() == [1, 1, 1, 0, 1, 1, 0, 1, 0, 0]
    assert tail_codes((2, 3), 0).tolist() == [0] * 5
    far = tail_codes((1,) * 12 + (100_001,), 16)
    assert (far[11], far[-1]) == (55842, 54086)


@pytest.mark.parametrize("bits", range(1, 17))
def test_fewer_tail_bits_are_the_leading_ones(bits):
    assert (tail_codes((7, 5), 16) >> (16 - bits)).tolist() == tail_codes((7, 5), bits).tolist()


def test_a_category_keeps_its_bits_whatever_comes_before_it():
    assert tail_codes((2, 3), 8)[2:].tolist() == tail_codes((90, 3), 8)[90:].tolist()
