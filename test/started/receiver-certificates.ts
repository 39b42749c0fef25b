import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';

/** A key and its certificate in PEM, as `tls.createServer` takes them. */
export type Certificate = Readonly<{ key: string; cert: string }>;

/** What a certificate claims; it is valid for a day around now by default. */
export type Claims = Readonly<{
  dns?: readonly string[];
  /** IPv4 only, in dotted form. */
  ips?: readonly string[];
  notBefore?: Date;
  notAfter?: Date;
}>;

const DAY_MS = 86_400_000;

/**
 * A certificate authority of this run: no key of it is ever on disk. It stands in for the public ones, so that
 * receivers on loopback can be verified as strictly as those on the internet.
 */
export function createAuthority(name = 'Test authority') {
  const keys = keyPair();
  const cert = certificate({ subject: name, issuer: name, keys, signer: keys.privateKey, isAuthority: true });
  return {
    cert,
    issue: (claims: Claims): Certificate => {
      const own = keyPair();
      const subject = claims.dns?.[0] ?? claims.ips?.[0] ?? 'nobody';
      return {
        key: pemOf(own.privateKey),
        cert: certificate({ subject, issuer: name, keys: own, signer: keys.privateKey, claims }),
      };
    },
  };
}

/** A certificate that vouches for itself. */
export function selfSigned(claims: Claims): Certificate {
  const keys = keyPair();
  const subject = claims.dns?.[0] ?? 'nobody';
  return {
    key: pemOf(keys.privateKey),
    cert: certificate({ subject, issuer: subject, keys, signer: keys.privateKey, claims }),
  };
}

type KeyPair = Readonly<{ publicKey: KeyObject; privateKey: KeyObject }>;
type Parts = Readonly<{
  subject: string;
  issuer: string;
  keys: KeyPair;
  signer: KeyObject;
  claims?: Claims;
  isAuthority?: boolean;
}>;

function keyPair(): KeyPair {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
}

function pemOf(key: KeyObject): string {
  return key.export({ type: 'pkcs8', format: 'pem' }).toString();
}

const ECDSA_SHA256 = sequence(oid('06082a8648ce3d040302'));

/** RFC 5280, section 4.1: just the fields that a verifier reads. */
function certificate({ subject, issuer, keys, signer, claims = {}, isAuthority = false }: Parts): string {
  const spki = keys.publicKey.export({ type: 'spki', format: 'der' });
  const { notBefore = new Date(Date.now() - DAY_MS), notAfter = new Date(Date.now() + DAY_MS) } = claims;
  const tbs = sequence(
    der(0xa0, der(0x02, Buffer.of(2))), // version 3
    der(0x02, Buffer.concat([Buffer.of(1), createHash('sha256').update(spki).digest().subarray(0, 8)])), // serial
    ECDSA_SHA256,
    nameOf(issuer),
    sequence(time(notBefore), time(notAfter)),
    nameOf(subject),
    spki,
    der(0xa3, sequence(...(isAuthority ? [authorityExtension()] : [namesExtension(claims)]))),
  );
  const signature = sign('sha256', tbs, signer);
  const whole = sequence(tbs, ECDSA_SHA256, der(0x03, Buffer.of(0), signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** basicConstraints, critical, CA true. */
function authorityExtension(): Buffer {
  const isCritical = der(0x01, Buffer.of(0xff));
  return sequence(oid('0603551d13'), isCritical, der(0x04, sequence(der(0x01, Buffer.of(0xff)))));
}

/** subjectAltName: DNS names and addresses. */
function namesExtension({ dns = [], ips = [] }: Claims): Buffer {
  const names = [
    ...dns.map((name) => der(0x82, Buffer.from(name))),
    ...ips.map((ip) => der(0x87, Buffer.from(ip.split('.').map(Number)))),
  ];
  return sequence(oid('0603551d11'), der(0x04, sequence(...names)));
}

function nameOf(common: string): Buffer {
  return sequence(der(0x31, sequence(oid('0603550403'), der(0x0c, Buffer.from(common)))));
}

/** UTCTime, good until 2049. */
function time(at: Date): Buffer {
  return der(0x17, Buffer.from(`${at.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return der(0x30, ...parts);
}

/** An object identifier, already encoded. */
function oid(hex: string): Buffer {
  return Buffer.from(hex, 'hex');
}

function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, ...lengthOf(content.length)]), content]);
}

/** DER wants the shortest form. */
function lengthOf(length: number): number[] {
  if (length < 0x80) return [length];
  return length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
}
