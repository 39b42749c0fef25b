/*
 * All accounts of a program that pass filters, at one moment. The addresses are taken at once; each account is read
 * when it is written out, from the held view, so a scan of any size holds one
 * slice of one account at a time.
 */
import type { Address } from '@solana/kit';
import type { AccountState } from '../chain/account.ts';
import type { View } from '../chain/accounts.ts';
import { addressBytes } from '../chain/address.ts';
import { encodeAccount, type AccountForm } from '../encode/account.ts';
import { printJson, printJsonPieces, type Json } from '../json/value.ts';
import type { ScanResult } from '../rpc/answer.ts';
import { contextOf } from '../rpc/context.ts';
import type { Filter } from './account-filter.ts';

/** What is looked for, and how it is written. */
export type Scan = Readonly<{
  owner: Address;
  filters: readonly Filter[];
  form: AccountForm;
  isSorted: boolean;
}>;

/** The accounts found, one at a time. */
export function* found(view: View, scan: Scan): Generator<readonly [Address, AccountState]> {
  for (const address of addressesOf(view, scan)) {
    const state = view.account(address);
    if (state?.owner === scan.owner && scan.filters.every((filter) => filter(state))) yield [address, state];
  }
}

function addressesOf(view: View, scan: Scan): readonly Address[] {
  const addresses = [...view.candidates(scan.owner)];
  if (!scan.isSorted) return addresses;
  return addresses
    .map((address) => ({ address, bytes: addressBytes(address) }))
    .sort((one, other) => Buffer.compare(one.bytes, other.bytes))
    .map(({ address }) => address);
}

/** The rows of a scan in Agave's form. */
export function encodeRow(view: View, scan: Scan, address: Address, state: AccountState): Json {
  return { account: encodeAccount(state, scan.form, view.account), pubkey: address };
}

/** A scan to be written out as it is read. `hasContext` puts it into the context of its bank. */
export function streamScan(view: View, scan: Scan, hasContext: boolean): ScanResult {
  // These two can refuse an account, and must do so before the first byte.
  if (scan.form.encoding !== 'base64' && scan.form.encoding !== 'base64+zstd') {
    for (const [address, state] of found(view, scan)) encodeRow(view, scan, address, state);
  }
  const release = view.hold();
  const rows = found(view, scan);
  function* pieces(): Generator<string> {
    yield hasContext ? `{"context":${printJson(contextOf(view.slot))},"value":[` : '[';
    let isFirst = true;
    for (const [address, state] of rows) {
      if (!isFirst) yield ',';
      yield* printJsonPieces(encodeRow(view, scan, address, state));
      isFirst = false;
    }
    yield hasContext ? ']}' : ']';
  }
  return { kind: 'pieces', pieces: pieces(), release };
}
