import type { Page } from 'playwright-core';
import { TOTP } from 'otpauth';
import { inviteFirstOperator } from '../../deploys/auth/sign-up.ts';
import { firstOperatorLink } from '../../deploys/console/paths.ts';
import { DEPLOYS_MIGRATIONS } from '../../deploys/schema.ts';
import { systemClock } from '../../shared/clock.ts';
import { ACCOUNTS_MIGRATIONS } from '../../shared/keys/schema.ts';
import { opened } from '../started/gateway.ts';

export const PASSWORD = 'four plain words together';

/** A link for the first operator as `bun start` prints it, from the database of a running app. */
export function inviteOperator(path: string, origin: string): string {
  const store = opened(path, { ...ACCOUNTS_MIGRATIONS, ...DEPLOYS_MIGRATIONS });
  const random = (bytes: number) => crypto.getRandomValues(new Uint8Array(bytes));
  const token = inviteFirstOperator({ store, clock: systemClock, random });
  store.close();
  if (token === undefined) throw new Error('there is an operator already');
  return firstOperatorLink(new URL(origin), token);
}

/** Fills the login and sends it. */
export async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** Sends the form of the first operator's link. */
export async function createLogin(page: Page, email: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create login' }).click();
}

/** Sets up the second factor up to its backup codes; gives its key in base32 and the first code. */
export async function setUpSecondFactor(page: Page) {
  await page.getByRole('button', { name: 'Set up' }).click();
  await page.getByRole('img', { name: 'QR code' }).waitFor();
  const key = (await page.textContent('.totp-key')) ?? '';
  await page.getByRole('textbox', { name: 'Code' }).fill(new TOTP({ secret: key }).generate());
  await page.getByRole('button', { name: 'Turn on' }).click();
  return { key, backupCode: (await page.textContent('.backup-codes code')) ?? '' };
}
