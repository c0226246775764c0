"""Images of MuJoCo robots and Meta-World's scenes, rendered off-screen by `mujoco.Renderer` in a separate process.

Software OpenGL (Mesa) and TensorFlow crash each other within one process. The rendering process runs `main`: it reads
pickled requests from its standard input and writes pickled answers to its standard output, until its input ends. On
Linux it uses EGL or OSMesa, or the backend in the environment variable `MUJOCO_GL`; no display is needed.
"""
import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from typing import Any, List

import numpy as np

__all__ = ["HEIGHT", "WIDTH", "Camera", "main"]

WIDTH, HEIGHT = 480, 480  # pixels
_VIEW = "track"  # the camera of the robots' models that follows them
_STEEPNESS = 8.0  # degrees, how far the view looks down at least
_FILLED = 0.97  # distance of the view, over that from which a ball around the robot fills the picture
_START = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import main; main()"
_LENGTH_BYTES = 8  # of the number that goes before each request: how many bytes it has
_GRACE = 2.0  # seconds that the process may take to end before it is killed


class Camera:
    """Renders robots with a view that follows them, from the direction of the camera `track` of their models.

    Args:
        model: the compiled `mujoco.MjModel` of the first robot.

    Raises:
        RuntimeError: OpenGL is missing; the message says what to install.
    """

    def __init__(self, model: Any) -> None:
        self._process: Any = None  # a `subprocess.Popen`
        self._model: Any = None
        failures = []
        for backend in backends():
            try:
                self._start(backend)
                return self._show(model)
            except RuntimeError as error:
                failures.append(f"{backend}: {error}" if backend else str(error))
                self.close()
        raise RuntimeError(
            f"render: there is no OpenGL to draw pictures with ({'; '.join(failures)}): run `apt-get install libegl1 "
            "libgl1-mesa-dri`, or `apt-get install libosmesa6` and set the environment variable MUJOCO_GL=osmesa")

    def picture(self, model: Any, qpos: np.ndarray) -> np.ndarray:
        """Returns an RGB image of a robot in the position `qpos` `[nq]`, uint8 `[HEIGHT, WIDTH, 3]`.

        Raises:
            RuntimeError: the rendering process has failed.
        """
        if model is not self._model:
            self._show(model)
        return self._ask(qpos)

    def close(self) -> None:
        """Ends the rendering process; no image can be rendered afterwards."""
        if self._process is not None:
            process, self._process = self._process, None
            with contextlib.suppress(OSError):
                process.stdin.close()
            try:
                process.wait(timeout=_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            self._complaints.close()

    def __del__(self) -> None:
        self.close()

    def _start(self, backend: str) -> None:
        environ = {name: value for name, value in os.environ.items() if name != "PYOPENGL_PLATFORM"}
        if backend:
            environ["MUJOCO_GL"] = backend
        self._complaints = tempfile.TemporaryFile()  # keeps output of OpenGL libraries from the terminal
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._complaints, env=environ, start_new_session=True)  # Ctrl-C does not reach it

    def _show(self, model: Any) -> None:
        self._ask(model)
        self._model = model

    def _ask(self, request: Any) -> Any:
        """Returns the answer to a request; raises `RuntimeError` if the answer is an error message."""
        try:
            pickled = pickle.dumps(request, protocol=pickle.HIGHEST_PROTOCOL)
            self._process.stdin.write(len(pickled).to_bytes(_LENGTH_BYTES, "big") + pickled)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (EOFError, OSError) as error:
            raise RuntimeError(self._last_words()) from error
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=_GRACE)
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        return f"the process that draws ended with exit code {self._process.returncode}: {last}"


def main() -> None:
    """Answers requests until there are no more; runs in the process that draws.

    Answers a model with True, a position with an image, and an exception with its text.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of libraries must not mix with the answers
    renderer: Any = None  # a `_Renderer`, after the first model
    while True:
        length = requests.read(_LENGTH_BYTES)
        if len(length) < _LENGTH_BYTES:
            return
        pickled = requests.read(int.from_bytes(length, "big"))  # read completely, even if unpickling fails
        try:
            request = pickle.loads(pickled)  # of a model: imports mujoco, and OpenGL with it
            if isinstance(request, np.ndarray):
                answer = renderer.draw(request)
            else:
                renderer, answer = _Renderer(request), True
        except Exception as error:  # of many kinds, depending on what is missing
            answer = f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


class _Renderer:
    """Renders one model: a robot in a close view on plain ground without reflections, another scene unchanged."""

    def __init__(self, model: Any) -> None:
        import mujoco

        self._mujoco, self._model, self._data = mujoco, model, mujoco.MjData(model)
        self._is_robot = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, _VIEW) >= 0
        if self._is_robot:
            self._soften()
            self._camera = self._view()
        self._renderer = mujoco.Renderer(model, height=HEIGHT, width=WIDTH)

    def draw(self, qpos: np.ndarray) -> np.ndarray:
        center = self._center(qpos)
        if not self._is_robot:
            self._renderer.update_scene(self._data, camera="corner2")  # of Meta-World; it stands on its head
            return np.ascontiguousarray(self._renderer.render()[::-1, ::-1])
        self._camera.lookat[:] = center
        self._renderer.update_scene(self._data, camera=self._camera)
        for light in self._renderer.scene.lights[:self._renderer.scene.nlight]:
            light.pos[:2] = center[:2]  # shadows are drawn near to the light
        return self._renderer.render()

    def _center(self, qpos: np.ndarray) -> np.ndarray:
        """Sets the position of the robot; returns its center of mass."""
        self._data.qpos = qpos
        self._mujoco.mj_fwdPosition(self._model, self._data)
        self._mujoco.mj_camlight(self._model, self._data)
        return self._data.subtree_com[0].copy()

    def _view(self) -> Any:
        """Returns a close camera that looks along y, at least as steeply as the camera of the model."""
        model, camera = self._model, self._mujoco.MjvCamera()
        center, bodies = self._center(model.qpos0), model.geom_bodyid > 0
        away = np.linalg.norm(self._data.geom_xpos[bodies] - center, axis=1) + model.geom_rbound[bodies]
        camera.distance = _FILLED * away.max() / np.sin(np.radians(model.vis.global_.fovy / 2.0))
        backwards = model.cam_mat0[model.camera(_VIEW).id].reshape(3, 3)[:, 2]
        camera.azimuth, camera.elevation = 90.0, min(-_STEEPNESS, -np.degrees(np.arcsin(backwards[2])))
        return camera

    def _soften(self) -> None:
        """Sets pale ground and sky and soft light, and removes reflections."""
        model, skybox = self._model, self._mujoco.mjtTexture.mjTEXTURE_SKYBOX
        model.mat_reflectance[:] = 0.0
        for start, kind, *shape in zip(model.tex_adr, model.tex_type, model.tex_height, model.tex_width,
                                       model.tex_nchannel, strict=True):
            pixels = model.tex_data[start:start + np.prod(shape)]
            pixels[:] = 225 if kind == skybox else 200 + pixels // 5
        model.vis.rgba.haze[:] = 0.9, 0.9, 0.9, 1.0
        model.vis.headlight.ambient[:] = model.vis.headlight.diffuse[:] = 0.35
        model.light_diffuse[:], model.light_specular[:] = 0.45, 0.1
        model.vis.map.shadowclip = 2.0 / model.stat.extent  # m; further away there would be shadows of nothing


def backends() -> List[str]:
    """Returns the values of `MUJOCO_GL` to try in turn; empty: the system's own."""
    chosen = os.environ.get("MUJOCO_GL", "")
    return [chosen] if chosen or sys.platform != "linux" else ["egl", "osmesa"]
