import type { Page } from 'playwright-core';
import { TOTP } from 'otpauth';

export const PASSWORD = 'four plain words together';

/** Fills the login and sends it. */
export async function signIn(page: Page, email: string, password: string): Promise<void> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** From the page of the first operator's link to the first page after it, by the second factor; gives its key in base32. */
export async function becomeOperator(page: Page, email: string): Promise<string> {
  await page.getByLabel('Email').fill(email);
  await page.getByLabel('Password').fill(PASSWORD);
  await page.getByRole('button', { name: 'Create login' }).click();
  await page.getByRole('button', { name: 'Set up' }).click();
  const key = (await page.textContent('.totp-key')) ?? '';
  await page.getByRole('textbox', { name: 'Code' }).fill(new TOTP({ secret: key }).generate());
  await page.getByRole('button', { name: 'Turn on' }).click();
  await page.getByRole('link', { name: 'I have saved them' }).click();
  return key;
}
