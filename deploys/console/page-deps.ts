import type { PersonPagesDeps } from '../users/person-pages.ts';

/** What the console's pages read and change: the services that the command line and the API stand on too. */
export type PageDeps = PersonPagesDeps &
  Readonly<{
    /** The console's own, such as `https://console.example.com`. */
    origin: string;
  }>;
