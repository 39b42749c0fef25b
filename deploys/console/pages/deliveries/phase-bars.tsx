/** @jsxImportSource preact */
import { latencyText } from '../../components/format.tsx';

const PARTS = [
  ['dnsMs', 'DNS'],
  ['connectMs', 'Connect'],
  ['tlsMs', 'TLS'],
  ['firstByteMs', 'First byte'],
] as const;

type Times = Readonly<Partial<Record<(typeof PARTS)[number][0] | 'totalMs', number>>>;
/** A part of an attempt; `startMs` is from the attempt's start. */
type Part = Readonly<{ label: string; startMs: number; ms: number }>;

/** Where the time of an attempt went, each part behind the one before it. */
export function PhaseBars({ phasesJson }: Readonly<{ phasesJson: string }>) {
  const times = JSON.parse(phasesJson) as Times; // as `finish` wrote it
  const { totalMs = 0 } = times;
  return (
    <table class="phases">
      <caption class="hidden">Where the time went</caption>
      <tbody>
        {partsOf(times).map((part, i) => (
          <tr key={part.label}>
            <th scope="row">{part.label}</th>
            <td>
              <Bar part={part} wholeMs={totalMs} n={i} />
            </td>
            <td class="align-end">{latencyText(part.ms)}</td>
          </tr>
        ))}
        <tr>
          <th scope="row">Total</th>
          <td />
          <td class="align-end">{latencyText(totalMs)}</td>
        </tr>
      </tbody>
    </table>
  );
}

/** The parts that were finished, and the rest up to the end. */
function partsOf(times: Times): readonly Part[] {
  const parts: Part[] = [];
  let startMs = 0;
  for (const [name, label] of PARTS) {
    const ms = times[name];
    if (ms === undefined) continue;
    parts.push({ label, startMs, ms });
    startMs += ms;
  }
  const restMs = (times.totalMs ?? 0) - startMs;
  const isAnswered = times.firstByteMs !== undefined;
  return restMs < 0.5
    ? parts
    : [...parts, { label: isAnswered ? 'Body' : 'Until it ended', startMs, ms: restMs }];
}

/** A drawing, because a width cannot be written into the page's style. */
function Bar({ part, wholeMs, n }: Readonly<{ part: Part; wholeMs: number; n: number }>) {
  const whole = Math.max(1, wholeMs);
  const width = Math.max(0.5, (part.ms / whole) * 100);
  const x = Math.min(100 - width, (part.startMs / whole) * 100);
  return (
    <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <rect x="0" y="3.5" width="100" height="1" class="phase-ground" />
      <rect x={x.toFixed(2)} y="0" width={width.toFixed(2)} height="8" class={`phase-${n + 1}`} />
    </svg>
  );
}
