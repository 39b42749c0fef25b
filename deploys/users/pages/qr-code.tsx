/** @jsxImportSource preact */
import { encode } from 'uqr';

/** Modules of white around the code, as the standard asks. */
const QUIET = 4;

/** A QR code of `text`, drawn here: what it says reaches nobody else. Dark on light in both themes, for the camera. */
export function QrCode({ text, label }: Readonly<{ text: string; label: string }>) {
  const { data, size } = encode(text, { ecc: 'M', border: QUIET });
  const path = data
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('');
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      width="240"
      height="240"
      viewBox={`0 0 ${size} ${size}`}
      shape-rendering="crispEdges"
    >
      <rect width={size} height={size} fill="#fff" />
      <path d={path} fill="#000" />
    </svg>
  );
}
