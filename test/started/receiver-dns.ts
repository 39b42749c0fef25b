import { createSocket } from 'node:dgram';

/** What the server knows of a name: addresses, or how it fails. `silent` never answers. */
type DnsAnswer = readonly string[] | 'no-such-name' | 'server-failure' | 'silent';

/** The answer for a name and a type, at its nth question, from 1. */
type DnsZone = (name: string, type: 'A' | 'AAAA', nth: number) => DnsAnswer;

const TYPES = { 1: 'A', 28: 'AAAA' } as const;
const CODES = { 'server-failure': 2, 'no-such-name': 3 } as const;

/** A name server (RFC 1035, UDP) that answers from a test's zone. It stands in for an attacker's. */
export async function startDns(zone: DnsZone, port = 0) {
  const asked = new Map<string, number>();
  const socket = createSocket('udp4');
  socket.on('message', (query, { address, port: from }) => {
    const { name, end } = nameIn(query);
    const code = query.readUInt16BE(end);
    const type = code === 1 || code === 28 ? TYPES[code] : undefined;
    const nth = (asked.get(`${name} ${type}`) ?? 0) + 1;
    asked.set(`${name} ${type}`, nth);
    const answer = type === undefined ? [] : zone(name, type, nth);
    if (answer !== 'silent') socket.send(answerTo(query.subarray(0, end + 4), code, answer), from, address);
  });
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject).bind(port, '127.0.0.1', resolve);
  });
  return {
    address: `127.0.0.1:${socket.address().port}`,
    /** How often `name` was asked for. */
    asked: (name: string, type: 'A' | 'AAAA') => asked.get(`${name} ${type}`) ?? 0,
    [Symbol.dispose]: () => void socket.close(),
  };
}

/** The first question's name, in lower case: resolvers mix cases as they like (0x20). */
function nameIn(query: Buffer): { name: string; end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  return { name: labels.join('.'), end: at + 1 };
}

function answerTo(question: Buffer, type: number, answer: Exclude<DnsAnswer, 'silent'>): Buffer {
  const records = typeof answer === 'string' ? [] : answer.map((address) => recordOf(address, type));
  const head = Buffer.alloc(12);
  question.copy(head, 0, 0, 2); // the id
  head.writeUInt16BE(0x8180 | (typeof answer === 'string' ? CODES[answer] : 0), 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(records.length, 6);
  return Buffer.concat([head, question.subarray(12), ...records]);
}

/** The name is a pointer to the question's; the record may be kept for no time at all. */
function recordOf(address: string, type: number): Buffer {
  const bytes = bytesOfIp(address);
  const head = Buffer.from([0xc0, 0x0c, 0, type, 0, 1, 0, 0, 0, 0, 0, bytes.length]);
  return Buffer.concat([head, bytes]);
}

/** The bytes of an IP address, IPv6 without dots. */
export function bytesOfIp(address: string): Buffer {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  const [front = [], back = []] = address.split('::').map((part) => (part === '' ? [] : part.split(':')));
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0');
  const groups = [...front, ...zeros, ...back].map((group) => group.padStart(4, '0'));
  return Buffer.from(groups.join(''), 'hex');
}
