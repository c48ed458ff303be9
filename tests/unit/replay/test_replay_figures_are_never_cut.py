"""The table of a replay shows every figure in full, on 80 columns too."""

import pytest
from rich.console import Console

from turnout_cli.replaying.summary import Share, Spread, Summary, render

FIRST_BYTE = Spread(150, 46.63, 78.55, 79.12, 80.01)
TOTAL = Spread(300, 52.45, 111.9, 113.4, 114.2)


@pytest.mark.parametrize("columns", [80, 200])
def test_no_figure_is_cut(columns: int) -> None:
    share = Share("gpu-b", "smollm2-2", 1_500, 1_180, FIRST_BYTE, TOTAL, 92_738_000, 2_302_000)
    summary = Summary(1_500, 1_500, 131.8, {"ok": 1_180}, {"200": 1_180}, FIRST_BYTE, 256, FIRST_BYTE, TOTAL, [share])
    console = Console(width=columns)
    with console.capture() as shown:
        console.print(render(summary, "trace"), highlight=False)
    words = shown.get().split()
    for figure in ("1,500", "1,180", "92,738,000", "2,302,000", "46.63", "78.55", "52.45", "112", "113"):
        assert words.count(figure) == 2, (figure, shown.get())  # its row, and all
