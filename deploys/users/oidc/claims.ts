/** What an ID token says of somebody. `email` only where the provider says that it is verified. */
export type Claims = Readonly<{ subject: string; email: string | undefined }>;

export type Expected = Readonly<{ issuer: string; clientId: string; nonce: string; nowMs: number }>;

const CLOCK_SLACK_SECONDS = 60;

/**
 * The claims of an ID token that came straight from the provider's token endpoint over TLS, which stands in for its
 * signature (OpenID Connect Core 3.1.3.7 rule 6); everything else of that list is checked. Otherwise a sentence for the log.
 */
export function readIdToken(token: unknown, { issuer, clientId, nonce, nowMs }: Expected): Claims | string {
  const claims = payloadOf(token);
  if (claims === undefined) return 'there is no ID token in the answer';
  const { iss, aud, azp, exp, sub, email, email_verified: isVerified } = claims;
  if (iss !== issuer) return 'the ID token is of another issuer';
  const audiences: unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.includes(clientId)) return 'the ID token is for another client';
  if ((audiences.length > 1 || azp !== undefined) && azp !== clientId)
    return 'the ID token was given to another client';
  if (typeof exp !== 'number' || exp + CLOCK_SLACK_SECONDS <= nowMs / 1_000) return 'the ID token is over';
  if (claims['nonce'] !== nonce) return 'the ID token answers another login';
  if (typeof sub !== 'string' || sub === '') return 'the ID token names nobody';
  // A space parts them: an issuer is a URL and has none.
  const subject = `${issuer} ${sub}`;
  return { subject, email: typeof email === 'string' && isVerified === true ? email : undefined };
}

function payloadOf(token: unknown): Record<string, unknown> | undefined {
  const [, payload, signature] = typeof token === 'string' ? token.split('.') : [];
  if (payload === undefined || signature === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Whether a parsed value has members. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
