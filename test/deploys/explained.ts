import type { Store } from '../../shared/store/open.ts';

/** How SQLite goes about one statement, step by step. */
type Explained = Readonly<{ sql: string; steps: readonly string[] }>;

/** Tells how SQLite goes about every SELECT that `make` prepares on the store it is given. */
export function explained(store: Store, make: (store: Store) => unknown): readonly Explained[] {
  const statements: string[] = [];
  const listening = new Proxy(store, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) => {
        if (name === 'prepare' || name === 'query') statements.push(String(args[0]));
        return value.apply(target, args);
      };
    },
  });
  make(listening);
  return statements
    .filter((sql) => /^\s*(?:SELECT|WITH)\b/i.test(sql))
    .map((sql) => ({
      sql,
      steps: store
        .prepare<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql}`)
        .all()
        .map(({ detail }) => detail),
    }));
}
