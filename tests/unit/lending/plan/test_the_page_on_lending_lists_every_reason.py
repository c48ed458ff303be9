"""`docs/lending.md` is held to the code: the reasons of a plan, in the order in which they are judged."""

import re
from itertools import takewhile
from pathlib import Path

from turnout_api.lending import Reason

PAGE = Path(__file__).parents[4] / "docs" / "lending.md"


def test_the_page_lists_the_reasons_in_their_order():
    section = re.split(r"\n#+ ", PAGE.read_text().split("# The reasons", 1)[1], maxsplit=1)[0]
    listed = re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE)
    judged = [*takewhile(lambda reason: reason is not Reason.HELPER_CLAIMED, Reason), Reason.HELPER_CLAIMED]
    assert listed == [reason.value for reason in judged]
