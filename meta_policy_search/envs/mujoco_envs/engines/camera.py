"""Renders images of MuJoCo robots and Meta-World scenes off-screen, with `mujoco.Renderer` in a separate process.

The process is separate because software OpenGL (Mesa) and TensorFlow crash when they run in the same process. It runs
`main`, which reads requests from standard input and writes pickled answers to standard output until its input ends.
Requests are pickled twice. On Linux, the process uses EGL or the backend in the environment variable `MUJOCO_GL`; no
display is needed.
"""
import os
import pickle
import subprocess
import sys
from typing import Any, Callable

import numpy as np

__all__ = ["HEIGHT", "WIDTH", "Camera", "main", "renderer_of"]

WIDTH, HEIGHT = 480, 480  # pixels
_VIEW = "track"  # name of the camera in the robots' models that follows the robot
_UPSIDE_DOWN = "corner2"  # name of Meta-World's camera
_STEEPNESS = 8.0  # minimum downward angle of the view, degrees
_FILLED = 0.97  # camera distance, relative to the distance at which a sphere around the robot fills the image
_START = f"import sys; sys.path[:] = sys.argv[1:]; from {__name__} import main; main()"


class Camera:
    """Renders robots with a camera that follows them.

    The camera is fixed for the reacher, whose base does not move, and for Meta-World scenes. A robot is seen
    from the direction of the camera `track` in its model. Each `Camera` owns a rendering process, which ends with
    the object.

    Args:
        model: the compiled `mujoco.MjModel` of the first robot or scene.

    Raises:
        RuntimeError: OpenGL is missing; the message names the packages to install.
    """

    def __init__(self, model: Any) -> None:
        environ = {name: value for name, value in os.environ.items() if name != "PYOPENGL_PLATFORM"}
        if sys.platform == "linux":
            environ["MUJOCO_GL"] = os.environ.get("MUJOCO_GL") or "egl"
        self._owner = os.getpid()
        self._process: Any = subprocess.Popen(
            [sys.executable, "-c", _START, *sys.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env=environ, start_new_session=True)  # Ctrl-C does not interrupt it
        try:
            self._ask(model)
        except RuntimeError as error:
            raise RuntimeError(
                f"render: OpenGL is not available ({error}): run `apt-get install libegl1 libgl1-mesa-dri`, or "
                "`apt-get install libosmesa6` and set the environment variable MUJOCO_GL=osmesa") from error
        self._model: Any = model

    def picture(self, model: Any, qpos: np.ndarray) -> np.ndarray:
        """Returns an RGB image of `model` in the position `qpos` `[nq]`, uint8 `[HEIGHT, WIDTH, 3]`.

        Raises:
            RuntimeError: the rendering process failed.
        """
        if model is not self._model:
            self._ask(model)
            self._model = model
        return self._ask(qpos)

    def __del__(self) -> None:
        if self._owner == os.getpid():  # a forked process has a copy
            self._process.kill()
            self._process.communicate()  # waits, and closes the pipes

    def _ask(self, request: Any) -> Any:
        """Sends a request and returns the answer; raises `RuntimeError` if the answer is an error message."""
        try:
            pickle.dump(pickle.dumps(request), self._process.stdin)
            self._process.stdin.flush()
            answer = pickle.load(self._process.stdout)
        except (EOFError, OSError) as error:
            raise RuntimeError(f"the rendering process ended with exit code {self._process.wait()}") from error
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer


def renderer_of(env: Any) -> Callable[[], np.ndarray]:
    """Returns a function that renders the current state of an environment, uint8 `[H, W, 3]`.

    Gymnasium's MuJoCo environments are rendered in a separate process, because software OpenGL and TensorFlow crash
    when they run in the same process. The function is valid until the next call of `set_task`.
    """
    from meta_policy_search.envs.compat import mujoco_simulator  # imported here because `main` does not need it

    simulator = mujoco_simulator(env)
    if simulator is None:
        return lambda: _picture_of(env)
    camera = Camera(simulator.model)
    return lambda: camera.picture(simulator.model, simulator.data.qpos)


def _picture_of(env: Any) -> np.ndarray:
    try:
        picture = np.asarray(env.render())
    except NotImplementedError as error:  # of Gymnasium's base class, without a message
        name = type(env.unwrapped).__name__
        raise NotImplementedError(str(error) or f"render: {name} does not implement this method") from error
    if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
        raise ValueError(f"render: expected an image, uint8 of shape (H, W, 3), got {picture.dtype} {picture.shape}")
    return picture


def main() -> None:
    """Answers requests until standard input ends; runs in the rendering process.

    The answer to a model is True, the answer to a position is an image. After an exception, `main` answers with its
    message and returns.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # otherwise libraries could print into the answers
    draw: Any = None  # a function after the first model
    answer: Any = True
    while not isinstance(answer, str):
        try:
            request = pickle.loads(pickle.load(requests))  # unpickling a model imports mujoco and OpenGL
            if isinstance(request, np.ndarray):
                answer = draw(request)
            else:
                draw = None  # frees its renderer, whose end would disturb the next one (MuJoCo 3.17)
                draw, answer = make_renderer(request), True
        except EOFError:
            return
        except Exception as error:  # missing libraries raise errors of different types
            answer = f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers, protocol=pickle.HIGHEST_PROTOCOL)
        answers.flush()


def make_renderer(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Returns a function that renders `model` in a position `[nq]`.

    Robots with a camera that follows them are shown close up, on plain ground without reflections. Other scenes are
    shown unchanged, by default from a distance that shows all of the model.
    """
    import mujoco

    data = mujoco.MjData(model)
    is_robot = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, _VIEW) >= 0
    is_upside_down = not is_robot and mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, _UPSIDE_DOWN) >= 0
    camera: Any = _VIEW if is_robot else _UPSIDE_DOWN if is_upside_down else -1  # -1: all of it
    if is_robot:
        _soften(model)
        if model.camera(_VIEW).bodyid[0] > 0:  # otherwise the camera is fixed to the world
            camera = _close_view(model, data)
    renderer = mujoco.Renderer(model, height=HEIGHT, width=WIDTH)

    def draw(qpos: np.ndarray) -> np.ndarray:
        center = _move(model, data, qpos)
        if isinstance(camera, mujoco.MjvCamera):
            camera.lookat[:] = center
        renderer.update_scene(data, camera=camera)
        if is_upside_down:
            return np.ascontiguousarray(renderer.render()[::-1, ::-1])
        if not is_robot:
            return renderer.render()
        for light in renderer.scene.lights[:renderer.scene.nlight]:
            light.pos[:2] = center[:2]  # shadows are only drawn near the light
        return renderer.render()

    return draw


def _move(model: Any, data: Any, qpos: np.ndarray) -> np.ndarray:
    """Sets the position of the robot and returns its center of mass."""
    import mujoco

    data.qpos = qpos
    mujoco.mj_fwdPosition(model, data)
    mujoco.mj_camlight(model, data)
    return data.subtree_com[0].copy()


def _close_view(model: Any, data: Any) -> Any:
    """Returns a close camera that looks along y, at least as steeply downward as the camera of the model."""
    import mujoco

    camera, bodies = mujoco.MjvCamera(), model.geom_bodyid > 0
    center = _move(model, data, model.qpos0)
    away = np.linalg.norm(data.geom_xpos[bodies] - center, axis=1) + model.geom_rbound[bodies]
    camera.distance = _FILLED * away.max() / np.sin(np.radians(model.vis.global_.fovy / 2.0))
    backwards = model.cam_mat0[model.camera(_VIEW).id].reshape(3, 3)[:, 2]
    camera.azimuth, camera.elevation = 90.0, min(-_STEEPNESS, -np.degrees(np.arcsin(backwards[2])))
    return camera


def _soften(model: Any) -> None:
    """Sets a pale ground and sky and soft light, and removes reflections."""
    import mujoco

    model.mat_reflectance[:] = 0.0
    for start, kind, *shape in zip(model.tex_adr, model.tex_type, model.tex_height, model.tex_width,
                                   model.tex_nchannel, strict=True):
        pixels = model.tex_data[start:start + np.prod(shape)]
        pixels[:] = 225 if kind == mujoco.mjtTexture.mjTEXTURE_SKYBOX else 200 + pixels // 5
    model.vis.rgba.haze[:] = 0.9, 0.9, 0.9, 1.0
    model.vis.headlight.ambient[:] = model.vis.headlight.diffuse[:] = 0.35
    model.light_diffuse[:], model.light_specular[:] = 0.45, 0.1
    model.vis.map.shadowclip = 2.0 / model.stat.extent  # m; at larger distances, false shadows appear
