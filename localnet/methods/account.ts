import { encodeAccount, readAccountForm } from '../encode/account.ts';
import { readView } from '../rpc/commitment.ts';
import { inContext } from '../rpc/context.ts';
import { invalidParams } from '../rpc/failure.ts';
import type { NamedMethods } from '../rpc/method.ts';
import { readAddress, readConfig, readList } from '../rpc/params.ts';

const MULTIPLE_ACCOUNTS_MAX = 100;

/** Accounts by address. */
export const ACCOUNT_METHODS: NamedMethods = {
  getBalance: {
    required: 1,
    optional: 1,
    answer: (chain, [address, config]) => {
      const key = readAddress(address);
      const view = readView(chain, readConfig(config, 'RpcContextConfig'));
      return inContext(view.slot, view.account(key)?.lamports ?? 0n);
    },
  },
  getAccountInfo: {
    required: 1,
    optional: 1,
    answer: (chain, [address, options]) => {
      const key = readAddress(address);
      const config = readConfig(options, 'RpcAccountInfoConfig');
      const form = readAccountForm(config, 'binary');
      const view = readView(chain, config);
      const state = view.account(key);
      return inContext(view.slot, state === undefined ? null : encodeAccount(state, form, view.account));
    },
  },
  getMultipleAccounts: {
    required: 1,
    optional: 1,
    answer: (chain, [addresses, options]) => {
      const listed = readList(addresses);
      if (listed.length > MULTIPLE_ACCOUNTS_MAX) {
        throw invalidParams(`Too many inputs provided; max ${MULTIPLE_ACCOUNTS_MAX}`);
      }
      const keys = listed.map(readAddress);
      const config = readConfig(options, 'RpcAccountInfoConfig');
      const form = readAccountForm(config, 'base64');
      const view = readView(chain, config);
      return inContext(
        view.slot,
        keys.map((key) => {
          const state = view.account(key);
          return state === undefined ? null : encodeAccount(state, form, view.account);
        }),
      );
    },
  },
};
