/** @jsxImportSource preact */
import { distanceText, utcText } from './instant.ts';

/** An instant in UTC. With JavaScript the viewer's own time stands in its tooltip. */
export function Time({ atMs }: Readonly<{ atMs: number }>) {
  return (
    <time dateTime={new Date(atMs).toISOString()} class="time">
      {utcText(atMs)}
      <abbr class="zone">UTC</abbr>
    </time>
  );
}

/** How far an instant is from now, with the instant itself in the tooltip. */
export function Ago({ atMs, nowMs }: Readonly<{ atMs: number; nowMs: number }>) {
  return (
    <time dateTime={new Date(atMs).toISOString()} title={`${utcText(atMs)} UTC`}>
      {distanceText(atMs, nowMs)}
    </time>
  );
}
