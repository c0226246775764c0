"""Draws the training iteration and the data formats from the text in this file.

    python docs/draw_training_loop.py

This command writes `docs/images/training_loop.svg` and `docs/images/path_of_samples.svg`.
"""
from pathlib import Path
from typing import List, NamedTuple, Sequence, Tuple
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parent / "images"
WIDTH = 1000
BLUE, GREEN, YELLOW, GRAY, INK = "#dbe9f6", "#ddf0dd", "#fbf0cf", "#ededed", "#222222"
LINE = 19  # pixels, distance between lines of text


class Box(NamedTuple):
    """A part of the library: place (left, top, width, height), color, title and further lines."""

    place: Tuple[int, int, int, int]
    color: str
    title: str
    lines: Sequence[str]


class Arrow(NamedTuple):
    """Data that one part passes to another: a line through points, a label and the position of the label."""

    points: Sequence[Tuple[int, int]]
    label: Sequence[str]
    label_at: Tuple[int, int]


LOOP_BOXES = [
    Box((20, 16, 960, 122), YELLOW, "Trainer: one iteration, train_itr()", [
        "1.  sampler.update_tasks(), policy.switch_to_pre_update(): M new tasks, all start from \u03b8",
        "2.  K times: obtain_samples(), process_samples(), algo.adapt(): one adaptation step per task",
        "3.  obtain_samples(), process_samples(): samples of the adapted policies",
        "4.  algo.optimize_policy(): the meta-update of \u03b8, through the K steps; then a row and a snapshot",
    ]),
    Box((20, 196, 190, 82), GREEN, "MetaEnv", ["sample_tasks, set_task", "reset, step"]),
    Box((300, 196, 180, 82), BLUE, "MetaSampler", ["M tasks x P paths,", "stepped together"]),
    Box((550, 196, 210, 82), BLUE, "MetaSampleProcessor", ["returns, advantages,", "one Baseline per task"]),
    Box((840, 196, 140, 82), BLUE, "MAMLAlgo", ["adapt", "optimize_policy"]),
    Box((300, 388, 680, 82), GREEN, "MetaPolicy", [
        "\u03b8: TensorFlow variables, the pre-update parameters",
        "\u03b8\u2032: arrays [M, ...], the post-update parameters of each task",
    ]),
]
LOOP_ARROWS = [
    Arrow([(300, 222), (210, 222)], ["actions"], (230, 215)),
    Arrow([(210, 254), (300, 254)], ["rewards,", "observations"], (216, 274)),
    Arrow([(480, 237), (550, 237)], ["paths"], (494, 230)),
    Arrow([(760, 237), (840, 237)], ["samples"], (770, 230)),
    Arrow([(340, 278), (340, 388)], ["observations"], (248, 338)),
    Arrow([(390, 388), (390, 278)], ["actions and their", "distributions"], (400, 328)),
    Arrow([(880, 278), (880, 388)], ["adapt():", "\u03b8\u2032 of each task"], (778, 328)),
    Arrow([(950, 278), (950, 388)], ["update:", "\u03b8"], (896, 328)),
]

FORMATS = [  # data formats in order: name, module, axes
    ("BatchedStep", "types", "one step of n environments: observations [n, O], rewards [n], ..."),
    ("Path", "types", "a dict: observations [T, O], ...; P dicts for each of M tasks"),
    ("TaskSamples", "types", "a dict: observations [N, O], ...; one dict for each of M tasks"),
    ("StepInputs", "meta_algos.inputs", "placeholders, fed by name: [M, N, ...]"),
    ("AdaptationStep", "meta_algos.inputs", "tensors of the losses in ops/losses.py: [M, N], [M]"),
]
CONVERTERS = [  # conversions from each format to the next: method, module, effect
    ("RolloutLoop.run", "samplers.rollout_loop", "writes each step to the arrays of the paths"),
    ("SampleProcessor.process_samples", "samplers.base", "adds returns and advantages; stacks the paths of a task"),
    ("stack_samples", "meta_algos.inputs", "pads tasks to arrays [M, N, ...] with a mask, to feed them"),
    ("MAMLAlgo.build_graph", "meta_algos.base", "builds densities and losses from the placeholders, once"),
]
SHOWN = [  # notes: row, title, lines
    (1, "a plain dict", ["arrays are views of buffers that are not reused"]),
    (2, "a plain dict", ["arrays are copies; edits take effect"]),
]
ROW, BOX_HEIGHT = 112, 62  # pixels: distance between boxes, height of a box

PATH_BOXES = [
    Box((20, 16 + ROW * row, 500, BOX_HEIGHT), GREEN if row in (0, 4) else BLUE, name, [axes])
    for row, (name, _, axes) in enumerate(FORMATS)
] + [Box((570, 16 + ROW * row, 410, BOX_HEIGHT), GRAY, title, lines) for row, title, lines in SHOWN]
PATH_ARROWS = [
    Arrow([(60, 16 + BOX_HEIGHT + ROW * row), (60, 16 + ROW * (row + 1))],
          [f"{method}, in {module.replace('.', '/')}.py:", what], (76, 37 + BOX_HEIGHT + ROW * row))
    for row, (method, module, what) in enumerate(CONVERTERS)
] + [Arrow([(520, 47 + ROW * row), (570, 47 + ROW * row)], [], (0, 0)) for row, _, _ in SHOWN]


class Picture(NamedTuple):
    """A figure: file in `images`, height, title and parts."""

    file: str
    height: int
    title: str
    boxes: Sequence[Box]
    arrows: Sequence[Arrow]


PICTURES = [
    Picture("training_loop.svg", 486, "Training iteration: trainer, sampler, sample processor, policy and algorithm",
            LOOP_BOXES, LOOP_ARROWS),
    Picture("path_of_samples.svg", 32 + BOX_HEIGHT + ROW * 4, "Data formats from the simulator to the meta-gradient",
            PATH_BOXES, PATH_ARROWS),
]


def draw(picture: Picture) -> str:
    """Returns a figure as SVG."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {picture.height}" width="{WIDTH}" '
        f'height="{picture.height}" '
        f'font-family="Helvetica, Arial, sans-serif" font-size="14" fill="{INK}">',
        f"<title>{picture.title}</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        f'orient="auto"><path d="M 0 0 L 10 5 L 0 10 z" fill="{INK}"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{picture.height}" fill="white"/>',
    ]
    for box in picture.boxes:
        left, top, width, height = box.place
        parts.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" rx="8" fill="{box.color}" '
                     f'stroke="{INK}" stroke-width="1.2"/>')
        parts += _text(left + 14, top + 26, [box.title], 'font-weight="bold" font-size="15"')
        parts += _text(left + 14, top + 48, box.lines)
    for arrow in picture.arrows:
        points = " ".join(f"{x},{y}" for x, y in arrow.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{INK}" stroke-width="1.6" '
                     'marker-end="url(#tip)"/>')
        parts += _text(*arrow.label_at, arrow.label, 'font-size="12.5" font-style="italic"')
    return "\n".join([*parts, "</svg>", ""])


def _text(x: int, y: int, lines: Sequence[str], style: str = "") -> List[str]:
    return [f'<text x="{x}" y="{y + LINE * number}" {style}>{escape(line)}</text>'.replace(" >", ">")
            for number, line in enumerate(lines)]


if __name__ == "__main__":
    for each in PICTURES:
        (IMAGES / each.file).write_text(draw(each), encoding="utf-8")
