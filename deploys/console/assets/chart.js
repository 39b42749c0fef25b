/* Charts: the data is in the page, uPlot draws it, colours come from the stylesheet. */
const drawn = new Map();
const HEIGHT_PX = 220;
const SERIES_COLOURS = 7;

function plotLibrary() {
  plotLibrary.loading ??= new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = document.getElementById('console-script').dataset.plot;
    script.onload = () => resolve(window.uPlot);
    script.onerror = reject;
    document.head.append(script);
  });
  return plotLibrary.loading;
}

/** A token's colour as it is in this theme; `light-dark()` is resolved by the browser. */
function colour(token, element) {
  const probe = document.createElement('span');
  probe.style.color = `var(--${token})`;
  element.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function seriesColour({ tone }, i, element) {
  return colour(tone ? `${tone}-ink` : `series-${(i % SERIES_COLOURS) + 1}`, element);
}

/** In a stack each series is drawn over the sum of those after it. */
function stacked(series) {
  const sums = [];
  const layers = series.toReversed().map(({ values }) =>
    values.map((value, i) => {
      sums[i] = (sums[i] ?? 0) + (value ?? 0);
      return sums[i];
    }),
  );
  return layers.toReversed();
}

const DAY_SECONDS = 86_400;

/** Hours within a day with the day below the first and every midnight; from a day on, days. All in UTC. */
function timeTicks(_, ticks, __, ___, stepSeconds) {
  return ticks.map((seconds, i) => {
    const text = new Date(seconds * 1_000).toISOString();
    const day = text.slice(5, 10);
    if (stepSeconds >= DAY_SECONDS) return day;
    const clock = text.slice(11, 16);
    return i === 0 || clock === '00:00' ? `${clock}\n${day}` : clock;
  });
}

function timeText(seconds) {
  return seconds === null ? '–' : new Date(seconds * 1_000).toISOString().slice(0, 16).replace('T', ' ');
}

function number(value) {
  if (value === null || value === undefined) return '–';
  return value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 2 : 0 });
}

function short(value) {
  return value.toLocaleString('en-US', { notation: 'compact', maximumSignificantDigits: 3 });
}

function optionsFor(uPlot, { kind, series, times }, element) {
  const axis = {
    stroke: colour('ink-soft', element),
    grid: { stroke: colour('line', element), width: 1 },
    ticks: { stroke: colour('line', element), width: 1 },
    font: '12px system-ui, sans-serif',
  };
  // A bar is centred on its time: the first and the last need half a step more.
  const edge = kind === 'line' || times.length < 2 ? 0 : (times[1] - times[0]) / 2;
  const bars = uPlot.paths.bars({ size: [0.8, 48], align: 0, radius: 0.12 });
  const lines = series.map((one, i) => {
    const stroke = seriesColour(one, i, element);
    const fill = kind === 'line' ? undefined : stroke;
    const value = (_, __, ___, at) => number(at === null ? null : one.values[at]);
    const shape = kind === 'line' ? { width: 1.75 } : { width: 0, paths: bars };
    return { label: one.label, stroke, fill, value, points: { show: times.length < 2 }, ...shape };
  });
  return {
    width: Math.max(240, element.clientWidth),
    height: HEIGHT_PX,
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC'),
    cursor: { y: false, points: { show: kind === 'line' } },
    legend: { live: true, markers: { width: 0, fill: (_, i) => lines[i - 1]?.stroke } },
    scales: {
      x: { range: (_, min, max) => [min - edge, max + edge] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      { ...axis, values: timeTicks },
      { ...axis, size: 56, values: (_, ticks) => ticks.map(short) },
    ],
    series: [{ label: 'UTC', value: (_, seconds) => timeText(seconds) }, ...lines],
  };
}

async function draw(element) {
  const uPlot = await plotLibrary();
  if (!element.isConnected) return;
  drawn.get(element)?.destroy();
  const data = JSON.parse(element.dataset.chart);
  const values = data.kind === 'stacked' ? stacked(data.series) : data.series.map((one) => one.values);
  drawn.set(element, new uPlot(optionsFor(uPlot, data, element), [data.times, ...values], element));
}

const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    drawn.get(target)?.setSize({ width: Math.max(240, contentRect.width), height: HEIGHT_PX });
  }
});

function drawAll(root) {
  for (const element of root.querySelectorAll('[data-chart]')) {
    sizes.observe(element);
    void draw(element);
  }
}

/* Without this, every refresh would leak the chart that it replaced. */
function forgetGone() {
  for (const [element, plot] of drawn) {
    if (element.isConnected) continue;
    plot.destroy();
    sizes.unobserve(element);
    drawn.delete(element);
  }
}

drawAll(document);
document.addEventListener('htmx:load', ({ target }) => {
  forgetGone();
  drawAll(target);
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawAll(document));
