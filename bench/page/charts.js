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

  const seconds = run.map(({ second }) => second + 1);
  const time = { time: false };
  const secondsAxis = axis('s', 40, { incrs: [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200] });
  draw(
    'rate',
    {
      scales: { x: time, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
      axes: [secondsAxis, axis(`${counted} a second`)],
      series: [
        { label: 'second', value: (_, value) => digits(value) },
        line('answered', '--first'),
        line('failed', '--failure'),
      ],
    },
    [seconds, run.map(({ answers }) => answers), run.map(({ failures }) => failures)],
  );
  draw(
    'latency',
    {
      scales: { x: time, y: { range: (_, __, most) => [0, Math.max(0.001, most * 1.1)] } },
      axes: [secondsAxis, axis('ms')],
      series: [
        { label: 'second', value: (_, value) => digits(value) },
        line('p50', '--first'),
        line('p99', '--second'),
      ],
    },
    [seconds, run.map(({ p50 }) => p50), run.map(({ p99 }) => p99)],
  );

  // Where the bytes are what matters.
  const megabytes = run.map(({ bytes }) => bytes / 1e6);
  if (Math.max(...megabytes) >= 1)
    draw(
      'bytes',
      {
        scales: { x: time, y: { range: (_, __, most) => [0, most * 1.1] } },
        axes: [secondsAxis, axis('MB a second')],
        series: [{ label: 'second', value: (_, value) => digits(value) }, line('MB', '--second')],
      },
      [seconds, megabytes],
    );

  // All ranges between the first and the last, also the empty ones, so that the axis is a logarithm.
  const [first] = timings.filter(({ count }) => count > 0);
  if (first !== undefined) {
    const counts = new Map(first.bars.map(([upTo, count]) => [Math.round(10 * Math.log10(upTo)), count]));
    const steps = [...counts.keys()];
    const [from, to] = [Math.min(...steps) - 1, Math.max(...steps) + 1];
    const all = Array.from({ length: to - from + 1 }, (_, i) => from + i);
    draw(
      'histogram',
      {
        scales: { x: time, y: { range: (_, __, most) => [0, Math.max(1, most * 1.1)] } },
        axes: [
          axis('ms, logarithmic', 40, {
            values: (_, values) => values.map((step) => digits(10 ** (step / 10))),
          }),
          axis('count'),
        ],
        series: [
          {
            label: `${first.name} up to, ms`,
            value: (_, step) => (step === null || step === undefined ? '-' : digits(10 ** (step / 10))),
          },
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
