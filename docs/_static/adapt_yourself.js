// The page "Adapt a policy yourself": 2D navigation, a Gaussian policy and one gradient step, without libraries.
// Policies are lists of matrices (arrays of rows): kernel and bias of each layer in turn, then the log std.
"use strict";

const adaptYourself = (() => {
  const DISCOUNT = 0.99, GAE_LAMBDA = 0.95, MAX_PUSH = 0.1, GOAL_RANGE = 0.5, TOLERANCE = 0.01;

  function makeNormal(seed) {  // standard normal numbers: mulberry32 and the Box-Muller transform
    let state = seed >>> 0;
    function uniform() {
      state = (state + 0x6D2B79F5) >>> 0;
      let x = Math.imul(state ^ (state >>> 15), state | 1);
      x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
      return ((x ^ (x >>> 14)) >>> 0) / 4294967296;
    }
    return Object.assign(
      () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform()), {uniform});
  }

  function randomPolicy(seed) {  // Glorot-uniform kernels, zero biases and log std
    const sizes = [2, 32, 32, 2], {uniform} = makeNormal(seed), theta = [];
    for (let i = 0; i + 1 < sizes.length; i++) {
      const limit = Math.sqrt(6 / (sizes[i] + sizes[i + 1]));
      theta.push(Array.from({length: sizes[i]}, () => Array.from({length: sizes[i + 1]},
        () => limit * (2 * uniform() - 1))));
      theta.push([Array(sizes[i + 1]).fill(0)]);
    }
    return [...theta, [[0, 0]]];
  }

  function layers(theta, observation) {  // outputs of all layers: the observation, hidden layers (tanh), the mean
    const outputs = [observation];
    for (let i = 0; i + 1 < theta.length; i += 2) {
      const x = outputs[outputs.length - 1], y = theta[i + 1][0].slice();
      theta[i].forEach((row, j) => row.forEach((weight, k) => { y[k] += x[j] * weight; }));
      outputs.push(i + 3 < theta.length ? y.map(Math.tanh) : y);
    }
    return outputs;
  }

  function samplePaths(theta, goal, numPaths, numSteps, seed) {
    const normal = makeNormal(seed), logStd = theta[theta.length - 1][0], paths = [];
    for (let p = 0; p < numPaths; p++) {
      const path = {observations: [], actions: [], rewards: []};
      let position = [0, 0], ended = false;
      while (!ended && path.rewards.length < numSteps) {
        const mean = layers(theta, position).pop();
        const action = mean.map((m, i) => m + Math.exp(logStd[i]) * normal());
        path.observations.push(position);
        path.actions.push(action);
        position = position.map((x, i) => x + MAX_PUSH * Math.min(1, Math.max(-1, action[i])));
        path.rewards.push(-Math.hypot(position[0] - goal[0], position[1] - goal[1]));
        ended = position.every((x, i) => Math.abs(x - goal[i]) < TOLERANCE);
      }
      paths.push({...path, end: position});
    }
    return paths;
  }

  const meanReturn = paths => paths.reduce((sum, path) => sum + path.rewards.reduce((a, b) => a + b, 0), 0)
    / paths.length;

  function discountedSums(values, discount) {
    const sums = values.slice();
    for (let t = sums.length - 2; t >= 0; t--) sums[t] += discount * sums[t + 1];
    return sums;
  }

  function solve(matrix, right) {  // Gaussian elimination with pivots
    const rows = matrix.map((row, i) => [...row, right[i]]), n = rows.length;
    for (let i = 0; i < n; i++) {
      let pivot = i;
      for (let j = i + 1; j < n; j++) if (Math.abs(rows[j][i]) > Math.abs(rows[pivot][i])) pivot = j;
      [rows[i], rows[pivot]] = [rows[pivot], rows[i]];
      for (let j = i + 1; j < n; j++) {
        const factor = rows[j][i] / rows[i][i];
        for (let k = i; k <= n; k++) rows[j][k] -= factor * rows[i][k];
      }
    }
    for (let i = n - 1; i >= 0; i--) {
      for (let k = i + 1; k < n; k++) rows[i][n] -= rows[i][k] * rows[k][n];
      rows[i][n] /= rows[i][i];
    }
    return rows.map(row => row[n]);
  }

  function advantagesOf(paths) {  // linear baseline, generalized advantage estimation, mean 0 and standard deviation 1
    const features = paths.map(path => path.observations.map(([x, y], step) => {
      const t = step / 100;
      return [x, y, x * x, y * y, t, t * t, t * t * t, 1];
    }));
    const returns = paths.map(path => discountedSums(path.rewards, DISCOUNT));
    const gram = Array.from({length: 8}, (_, i) => Array.from({length: 8}, (_, j) => i === j ? 1e-5 : 0));
    const moments = Array(8).fill(0);
    features.forEach((rows, p) => rows.forEach((row, t) => row.forEach((a, i) => {
      moments[i] += a * returns[p][t];
      row.forEach((b, j) => { gram[i][j] += a * b; });
    })));
    const weights = solve(gram, moments);
    const estimates = paths.map((path, p) => {
      const values = features[p].map(row => row.reduce((sum, a, i) => sum + a * weights[i], 0));
      return discountedSums(path.rewards.map((reward, t) => reward + DISCOUNT * (values[t + 1] ?? 0) - values[t]),
        DISCOUNT * GAE_LAMBDA);
    });
    const all = estimates.flat(), mean = all.reduce((a, b) => a + b, 0) / all.length;
    const std = Math.sqrt(all.reduce((sum, a) => sum + (a - mean) ** 2, 0) / all.length) + 1e-8;
    return estimates.map(path => path.map(a => (a - mean) / std));
  }

  function gradientStep(theta, paths, stepSize) {  // theta + alpha * mean of A * gradient of log pi(a|o)
    const advantages = advantagesOf(paths), count = advantages.flat().length, last = theta.length - 1;
    const gradient = theta.map(matrix => matrix.map(row => row.map(() => 0)));
    paths.forEach((path, p) => path.observations.forEach((observation, t) => {
      const outputs = layers(theta, observation), weight = advantages[p][t] / count;
      const mean = outputs[outputs.length - 1], std = theta[last][0].map(Math.exp);
      const z = mean.map((m, i) => (path.actions[t][i] - m) / std[i]);
      z.forEach((x, i) => { gradient[last][0][i] += weight * (x * x - 1); });
      let back = z.map((x, i) => weight * x / std[i]);  // derivative by the outputs of a layer, before tanh
      for (let i = last - 2; i >= 0; i -= 2) {
        const inputs = outputs[i / 2];
        back.forEach((b, k) => { gradient[i + 1][0][k] += b; });
        inputs.forEach((x, j) => back.forEach((b, k) => { gradient[i][j][k] += x * b; }));
        back = inputs.map((x, j) => (1 - x * x) * back.reduce((sum, b, k) => sum + b * theta[i][j][k], 0));
      }
    }));
    return theta.map((matrix, i) => matrix.map((row, j) => row.map((x, k) => x + stepSize * gradient[i][j][k])));
  }

  // Returns the paths before adaptation and after each gradient step, and the parameters after the last one.
  function adapt(theta, goal, numSteps, numPaths, pathLength, stepSize, seed = 1) {
    const steps = [samplePaths(theta, goal, numPaths, pathLength, seed)];
    for (let k = 0; k < numSteps; k++) {
      theta = gradientStep(theta, steps[k], stepSize);
      steps.push(samplePaths(theta, goal, numPaths, pathLength, seed + 1000 * (k + 1)));
    }
    return {theta, steps};
  }

  // The page ---------------------------------------------------------------------------------------------------------

  function start(root, policies) {
    const get = name => root.querySelector(`[data-id="${name}"]`);
    const all = {...policies, random: randomPolicy(1)};
    let goal = [0.4, 0.3], numSteps = 0;

    function lines(paths, kind) {
      return paths.map(path => {
        const points = [...path.observations, path.end].map(([x, y]) => `${x.toFixed(3)},${(-y).toFixed(3)}`);
        return `<polyline class="${kind}" points="${points.join(" ")}"/>`;
      }).join("");
    }

    function draw() {
      const number = name => Number(get(name).value);
      const {steps} = adapt(all[get("policy").value], goal, numSteps, number("paths"), number("length"), number("alpha"));
      get("lines").innerHTML = lines(steps[0], "before") + (numSteps ? lines(steps[numSteps], "after") : "");
      get("goal").setAttribute("transform", `translate(${goal[0]} ${-goal[1]})`);
      get("goal").setAttribute("aria-label", `Goal at ${goal[0].toFixed(2)}, ${goal[1].toFixed(2)}. `
        + "The arrow keys move it.");
      get("returns").innerHTML = steps.map((paths, k) => `<tr><td>${k}</td><td>${meanReturn(paths).toFixed(1)}</td></tr>`)
        .join("");
      get("status").textContent = `Mean return ${meanReturn(steps[numSteps]).toFixed(1)} after ${numSteps} gradient `
        + `step${numSteps === 1 ? "" : "s"}.`;
      get("step").disabled = numSteps === 5;
      for (const name of ["alpha", "paths", "length"]) get(`${name}-value`).textContent = get(name).value;
    }

    function moveGoal(x, y) {
      goal = [x, y].map(value => Math.min(GOAL_RANGE, Math.max(-GOAL_RANGE, Math.round(value * 100) / 100)));
      draw();
    }

    function drag(event) {
      const box = get("plane").getBoundingClientRect();
      moveGoal(1.4 * (event.clientX - box.left) / box.width - 0.7, 0.7 - 1.4 * (event.clientY - box.top) / box.height);
    }

    get("plane").addEventListener("pointerdown", event => {
      event.preventDefault();
      get("plane").setPointerCapture(event.pointerId);
      get("goal").focus();
      drag(event);
    });
    get("plane").addEventListener("pointermove", event => { if (event.buttons) drag(event); });
    get("goal").addEventListener("keydown", event => {
      const push = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1]}[event.key];
      if (!push) return;
      event.preventDefault();
      moveGoal(goal[0] + 0.05 * push[0], goal[1] + 0.05 * push[1]);
    });
    get("step").addEventListener("click", () => { numSteps += 1; draw(); });
    get("reset").addEventListener("click", () => { numSteps = 0; draw(); });
    for (const name of ["policy", "alpha", "paths", "length"]) get(name).addEventListener("input", draw);
    root.hidden = false;
    draw();
  }

  return {adapt, meanReturn, randomPolicy, start};
})();
