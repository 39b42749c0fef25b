import type { News } from '../../../gateway/replica/published.ts';

/** What Redis says where everything is published and nothing has changed since. */
export const NEWS: News = {
  origin: 'there',
  holder: 't1',
  epoch: 'e1',
  isWhole: true,
  version: 0,
  seq: 0,
  config: 1,
  termsId: '',
  terms: '',
  from: 0,
  rows: [],
  upTo: 0,
  isGap: false,
};
