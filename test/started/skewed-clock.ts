import { readFileSync } from 'node:fs';

// Loaded before an app by `--preload`: its wall clock is off by the milliseconds in the file of SKEW_FILE, whenever that changes.
const file = process.env['SKEW_FILE'] ?? '';
const now = Date.now.bind(Date);
let skewMs = 0;

function look(): void {
  try {
    skewMs = Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    // it is not written yet
  }
}

look();
setInterval(look, 50).unref();
Date.now = () => now() + skewMs;
