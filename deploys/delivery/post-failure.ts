import type { Phase } from './phases.ts';

/** Why a connection gave no status line. */
export type PostFailure =
  | 'timeout'
  | 'connection_refused'
  | 'connection_reset'
  | 'unreachable'
  | 'tls_error'
  | 'tls_timeout'
  | 'bad_response';

/** Codes of verification and of BoringSSL whose meaning is worth a sentence. */
const TLS_DETAILS: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'the certificate is for another name',
  CERT_HAS_EXPIRED: 'the certificate has expired',
  CERT_NOT_YET_VALID: 'the certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'the certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'the certificate is from an authority that is not trusted',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'the certificate is from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT: 'the certificate is from an authority that is not trusted',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'the certificate is from an authority that is not trusted',
  ERR_SSL_WRONG_VERSION_NUMBER: 'the port does not speak TLS',
  ERR_SSL_HTTP_REQUEST: 'the port does not speak TLS',
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: 'the receiver has no TLS 1.2 or later',
  ERR_SSL_UNSUPPORTED_PROTOCOL: 'the receiver has no TLS 1.2 or later',
};

/** A connection that the other side closed or broke. */
const BROKEN: ReadonlySet<string> = new Set(['ECONNRESET', 'ECONNABORTED', 'EPIPE', 'ERR_SOCKET_CLOSED']);

/**
 * Why a connection failed, from the error that ended it and the phase it was in. `detail` is built from the error's
 * code alone: messages repeat what the receiver sent.
 */
export function failureFrom(error: unknown, phase: Phase | undefined): { code: PostFailure; detail: string } {
  const raw = error instanceof Error && 'code' in error ? error.code : undefined;
  const code = typeof raw === 'string' && /^[A-Za-z0-9_]{1,80}$/.test(raw) ? raw : 'no code';
  if (phase === 'connectMs')
    return { code: code === 'ECONNREFUSED' ? 'connection_refused' : 'unreachable', detail: code };
  if (BROKEN.has(code)) return { code: 'connection_reset', detail: code };
  if (phase === 'tlsMs' || code.startsWith('ERR_SSL'))
    return { code: 'tls_error', detail: TLS_DETAILS[code] ?? code };
  return { code: 'bad_response', detail: code };
}
