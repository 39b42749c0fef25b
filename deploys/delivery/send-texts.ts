import type { FailureCode, RefusalReason } from './send.ts';

/**
 * What the customer is told of an attempt without an answer: one fixed sentence each, which names no address. An
 * attacker who points webhooks at private networks learns nothing from it.
 */
export const SEND_TEXTS: Readonly<Record<FailureCode | RefusalReason, string>> = {
  timeout: 'No answer within 10 seconds',
  dns_error: 'The host name could not be resolved',
  dns_timeout: 'The host name could not be resolved within 3 seconds',
  connection_refused: 'The connection was refused',
  connection_reset: 'The connection was closed before an answer came',
  unreachable: 'The host could not be reached',
  tls_error: 'No secure connection could be made: check the certificate and TLS 1.2 or later',
  tls_timeout: 'The TLS handshake took too long',
  bad_response: 'The answer was not valid HTTP',
  aborted: 'The attempt was given up because the service is stopping',
  internal_error: 'The request could not be made because of a fault of this service',
  blocked_url: 'The URL is no longer allowed',
  blocked_address: 'The host resolves to a non-public address',
};
