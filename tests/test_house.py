"""The order of the package: which room imports from which, no circles, no long files, and what each room is for."""
import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "meta_policy_search"
ROOMS = [  # a room imports from itself and from rooms before it; those of a line do not import from one another
    ("types",), ("tf_compat",), ("sessions",),
    ("utils",),
    ("registry",),
    ("ops",),
    ("envs",),
    ("plotting",),
    ("actors",),
    ("baselines",),
    ("samplers",),
    ("trajectory_batch",),
    ("optimizers", "policies"),
    ("np",),
    ("meta_algos",),
    ("run_folder",), ("training_loop",),
    ("local_runner", "meta_trainer"),
    ("algos",),
    ("evaluation",), ("meta_evaluator", "run"),
]
MOST_LINES = 450


def module_name(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imports_of(name):
    """Names of what a module imports anywhere: within functions and for annotations, too."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: imports here say the whole path"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                found.add(module if module in MODULES else node.module)
    return found - {name}


IMPORTS = {name: imports_of(name) for name in MODULES}


def room_of(name):
    return (name.split(".") + [""])[1]


def test_every_room_has_its_place():
    assert {room for rooms in ROOMS for room in rooms} == {room_of(name) for name in MODULES} - {""}


def test_a_room_imports_from_earlier_ones():
    level = {room: i for i, rooms in enumerate(ROOMS) for room in rooms}
    upwards = [
        f"{name} imports {imported}"
        for name, found in IMPORTS.items() if room_of(name)
        for imported in found & set(MODULES)
        if room_of(imported) and room_of(imported) != room_of(name) and level[room_of(imported)] >= level[room_of(name)]
    ]
    assert not upwards, "\n".join(upwards)


def test_the_package_imports_nothing_that_is_beside_it():
    beside = {"experiments", "benchmarks", "tests"}
    assert not {name for name in MODULES for imported in IMPORTS[name] if imported.split(".")[0] in beside}


def test_no_files_import_each_other():
    """Given the files apart from the faces of folders, when those that import nothing of the rest go, none is left."""
    files = {name for name, path in MODULES.items() if path.name != "__init__.py"}
    while free := {name for name in files if not IMPORTS[name] & files}:
        files -= free
    while unused := {name for name in files if not any(name in IMPORTS[other] for other in files)}:
        files -= unused
    assert not files, f"in circles, or between two of them: {sorted(files)}"


def test_no_file_imports_the_face_of_its_own_folder():
    faces = {name for name, path in MODULES.items() if path.name == "__init__.py"} - {"meta_policy_search"}
    through = [f"{name} imports {face}"
               for name in MODULES for face in IMPORTS[name] & faces if name.startswith(face + ".")]
    assert not through, "\n".join(through)


def test_no_file_is_long():
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    too_long = {name: length for name, length in lengths.items() if length > MOST_LINES}
    assert not too_long, too_long


def test_each_folder_says_what_is_in_it():
    for name, path in MODULES.items():
        if path.name == "__init__.py" and name.count(".") <= 1:
            first = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0]
            assert first[:1].isupper() and first.endswith("."), f"{name}: expected a sentence, got {first!r}"
