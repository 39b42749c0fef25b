// Answers each line of standard input (secret, timestamp, body, signature in hex; now) with true or false.
import { readFileSync } from 'node:fs';
import { verify } from './verify.mjs';

for (const line of readFileSync(0, 'utf8').trimEnd().split('\n')) {
  const [secret, timestamp, body, signature, now] = line.split('\t');
  const text = (hex) => Buffer.from(hex, 'hex').toString();
  const bytes = Buffer.from(body, 'hex');
  console.log(verify(text(secret), text(timestamp), bytes, text(signature), Number(now)));
}
