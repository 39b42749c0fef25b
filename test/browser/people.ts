import type { Page } from 'playwright-core';
import { codeOf, stepAt } from '../../deploys/users/totp.ts';

export const PASSWORD = 'four plain words together';

/** Fills the login and sends it. */
export async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** From the page of the first operator's link to the first page after it, by the second factor; gives its key. */
export async function becomeOperator(page: Page, email: string): Promise<Uint8Array> {
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Make the login' }).click();
  await page.getByRole('button', { name: 'Set up' }).click();
  const key = bytesOf((await page.textContent('.totp-key')) ?? '');
  await page.getByRole('textbox', { name: 'Code' }).fill(codeOf(key, stepAt(Date.now())));
  await page.getByRole('button', { name: 'Turn it on' }).click();
  await page.getByRole('link', { name: 'I have stored them' }).click();
  return key;
}

/** The bytes of a key as an authenticator app takes it. */
export function bytesOf(base32: string): Uint8Array {
  const bits = [...base32]
    .map((letter) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(letter).toString(2).padStart(5, '0'))
    .join('');
  return Uint8Array.from(bits.match(/.{8}/g) ?? [], (byte) => Number.parseInt(byte, 2));
}
