import { readAccountForm } from '../encode/account.ts';
import { readView } from '../rpc/commitment.ts';
import type { NamedMethods } from '../rpc/method.ts';
import { readAddress, readBoolean, readConfig } from '../rpc/params.ts';
import { readFilters } from './account-filter.ts';
import { streamScan } from './scan.ts';

/** Accounts by owner. */
export const PROGRAM_ACCOUNTS_METHODS: NamedMethods = {
  getProgramAccounts: {
    required: 1,
    optional: 1,
    answer: (chain, [program, options]) => {
      const owner = readAddress(program);
      const config = readConfig(options, 'RpcProgramAccountsConfig');
      const form = readAccountForm(config, 'binary');
      const filters = readFilters(config.filters);
      const hasContext = readBoolean(config.withContext, false);
      const isSorted = readBoolean(config.sortResults, true);
      return streamScan(readView(chain, config), { owner, filters, form, isSorted }, hasContext);
    },
  },
};
