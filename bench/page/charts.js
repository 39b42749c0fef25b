// Draws the charts of a result's page from the data in it. In the browser; nothing is loaded.
(() => {
  const { run, timings, counted } = JSON.parse(document.getElementById('data').textContent);
  const HEIGHT = 240;
  // `light-dark()` in a custom property is resolved where it is used, so the value is read from an element that uses it.
  const probe = document.createElement('i');
  document.body.append(probe);
  const resolved = (name) => () => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const digits = (value) =>
    value === null || value === undefined ? '-' : Number(value.toPrecision(3)).toLocaleString('en-US');
  const axis = (label, size = 60, more = {}) => ({
    label,
    stroke: resolved('--quiet'),
    grid: { stroke: resolved('--line'), width: 1 },
    ticks: { stroke: resolved('--line'), width: 1 },
    size,
    values: (_, values) => values.map(digits),
    ...more,
  });
  const line = (label, name, more = {}) => ({
    label,
    stroke: resolved(name),
    width: 2,
    points: { show: run.length < 60, size: 5, fill: resolved(name) },
    value: (_, value) => digits(value),
    ...more,
  });
  const charts = [];
  const draw = (id, options, data) => {
    const at = document.getElementById(id);
    // A chart without a value is left out.
    if (at === null || data.slice(1).every((values) => values.every((value) => !value))) return;
    const plot = new uPlot({ ...options, width: at.clientWidth, height: HEIGHT }, data, at);
    charts.push({ at, plot });
  };

  const time = { time: false };
  const number = (label, show = digits) => ({ label, value: (_, value) => show(value) });
  const scaled = (least) => ({ x: time, y: { range: (_, __, most) => [0, Math.max(least, most * 1.1)] } });
  const seconds = run.map(({ second }) => second + 1);
  const secondsAxis = axis('s', 40, { incrs: [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200] });
  /** A figure of each second, or two. */
  const drawRun = (id, label, least, ...lines) =>
    draw(
      id,
      {
        scales: scaled(least),
        axes: [secondsAxis, axis(label)],
        series: [number('second'), ...lines.map(([name, colour]) => line(name, colour))],
      },
      [seconds, ...lines.map(([, , valueOf]) => run.map(valueOf))],
    );
  drawRun(
    'rate',
    `${counted} a second`,
    1,
    ['answered', '--first', ({ answers }) => answers],
    ['failed', '--failure', ({ failures }) => failures],
  );
  drawRun(
    'latency',
    'ms',
    0.001,
    ['p50', '--first', ({ p50 }) => p50],
    ['p99', '--second', ({ p99 }) => p99],
  );
  // Where the bytes are what matters.
  if (run.some(({ bytes }) => bytes >= 1e6))
    drawRun('bytes', 'MB a second', 0.001, ['MB', '--second', ({ bytes }) => bytes / 1e6]);

  // All ranges between the first and the last, also the empty ones, so that the axis is a logarithm.
  const [first] = timings.filter(({ count }) => count > 0);
  if (first !== undefined) {
    const counts = new Map(first.bars.map(([upTo, count]) => [Math.round(10 * Math.log10(upTo)), count]));
    const msOf = (step) => digits(step === null || step === undefined ? step : 10 ** (step / 10));
    const steps = [...counts.keys()];
    const [from, to] = [Math.min(...steps) - 1, Math.max(...steps) + 1];
    const all = Array.from({ length: to - from + 1 }, (_, i) => from + i);
    draw(
      'histogram',
      {
        scales: scaled(1),
        axes: [axis('ms, logarithmic', 40, { values: (_, steps) => steps.map(msOf) }), axis('count')],
        series: [
          number(`${first.name} up to, ms`, msOf),
          line('count', '--first', {
            // A bar ends at the upper edge of its range, which is its place on the axis.
            paths: uPlot.paths.bars({ size: [0.9], align: -1 }),
            fill: resolved('--first'),
            points: { show: false },
          }),
        ],
      },
      [all, all.map((step) => counts.get(step) ?? 0)],
    );
  }

  const redraw = () => {
    for (const { plot } of charts) plot.redraw(false, true);
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  new ResizeObserver(() => {
    for (const { at, plot } of charts)
      if (at.clientWidth !== plot.width) plot.setSize({ width: at.clientWidth, height: HEIGHT });
  }).observe(document.body);
})();
