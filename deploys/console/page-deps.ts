import type { PersonPagesDeps } from '../users/person-pages.ts';
import type { WebhookPageDeps } from './pages/webhook-page-deps.ts';

/** What the console's pages read and change: the services that the command line and the API stand on too. */
export type PageDeps = PersonPagesDeps &
  Readonly<{
    /** The console's own, such as `https://console.example.com`. */
    origin: string;
    /** Gives n uniform bytes. */
    random(bytes: number): Uint8Array;
    /** Absent where no webhooks are kept. */
    webhookPages?: WebhookPageDeps | undefined;
  }>;
