import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import { Secret } from '../../shared/secret.ts';

/** A secret at rest: 12 bytes of nonce, the ciphertext, 16 bytes of tag. `keyId` names the key it is sealed under. */
export type Sealed = Readonly<{ ciphertext: Uint8Array; keyId: number }>;

/** Whose secret it is. Sealed for one webhook, a secret cannot be opened as another's. */
export type Owner = Readonly<{ accountId: number; webhookId: string }>;

export type Seal = Readonly<{
  seal(secret: Secret, owner: Owner): Sealed;
  /** Throws when the key is not there, or when the bytes are not what was sealed for this owner. */
  unseal(sealed: Sealed, owner: Owner): Secret;
  /** Whether the key of this name is there. */
  opens(keyId: number): boolean;
}>;

const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const SECRET_BYTES = 32;

/** A webhook's secret: `whsec_` and 64 hex digits. Its UTF-8 as shown is the key of the signature. */
export function makeWebhookSecret(random: (bytes: number) => Uint8Array): Secret {
  return new Secret(`whsec_${Buffer.from(random(SECRET_BYTES)).toString('hex')}`);
}

/**
 * AES-256-GCM under the first of `keys`, each 32 bytes in base64; the others only open what they sealed once. A nonce
 * is random: the same one twice becomes likely only after some billions of secrets. `random` gives n uniform bytes.
 */
export function createSeal(
  keys: readonly [Secret, ...Secret[]],
  random: (bytes: number) => Uint8Array,
): Seal {
  const newest = keyFrom(keys[0]);
  const byId = new Map(keys.map(keyFrom).map((key) => [key.id, key]));
  return {
    seal: (secret, owner) => {
      const nonce = random(NONCE_BYTES);
      const cipher = createCipheriv('aes-256-gcm', newest.bytes, nonce, { authTagLength: TAG_BYTES });
      cipher.setAAD(contextOf(owner));
      const hidden = [cipher.update(secret.reveal(), 'utf8'), cipher.final()];
      return { ciphertext: Buffer.concat([nonce, ...hidden, cipher.getAuthTag()]), keyId: newest.id };
    },
    unseal: ({ ciphertext, keyId }, owner) => {
      const key = byId.get(keyId);
      if (key === undefined) throw new Error(`a webhook secret is sealed under another key (${keyId})`);
      const nonce = ciphertext.subarray(0, NONCE_BYTES);
      const decipher = createDecipheriv('aes-256-gcm', key.bytes, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(contextOf(owner));
      decipher.setAuthTag(ciphertext.subarray(-TAG_BYTES));
      const shown = [decipher.update(ciphertext.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()];
      return new Secret(Buffer.concat(shown).toString('utf8'));
    },
    opens: (keyId) => byId.has(keyId),
  };
}

/** A key and its name, 32 bits of a hash: the name tells a lost key from damaged bytes and says nothing of the key. */
function keyFrom(key: Secret): Readonly<{ bytes: Buffer; id: number }> {
  const bytes = Buffer.from(key.reveal(), 'base64');
  return { bytes, id: createHash('sha256').update('key id ').update(bytes).digest().readUInt32BE() };
}

function contextOf({ accountId, webhookId }: Owner): Buffer {
  return Buffer.from(`webhook secret of ${accountId}/${webhookId}`);
}
