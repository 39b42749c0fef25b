import { type CellCounter, CELL_COUNTER_NAMES } from '../../shared/ledger/counters.ts';
import {
  cellField,
  type CellPlace,
  cellsKey,
  counterAt,
  NO_HOUR,
  spentKey,
} from '../../shared/ledger/shared-usage.ts';
import { overCells } from '../../shared/ledger/over-cells.ts';
import type { RedisScript } from '../../shared/redis/link.ts';
import type { HourCell, NodeSpent } from './cell-source.ts';

/** Replies the values of nodes and fields, nothing for what is not there; one instant. */
export const READ_CELLS: RedisScript = {
  lua: overCells(1, `values[#values + 1] = redis.call('HGET', key, ARGV[at]) or ''`),
};

/**
 * Of each the value that was taken: nobody asks for it again, and what is told later is told whole. What was told
 * meanwhile stays.
 */
export const FORGET_CELLS: RedisScript = {
  lua: overCells(
    2,
    `if redis.call('HGET', key, ARGV[at]) == ARGV[at + 1] then redis.call('HDEL', key, ARGV[at]) end`,
  ),
};

type Script = (...words: readonly (string | number)[]) => Promise<unknown>;

/** What is to be read of one account and hour. */
export type Names = Readonly<{
  accountId: number;
  hour: number;
  nodes: readonly string[];
  cells: readonly CellPlace[];
}>;
/** The same with what was read, first of the nodes and then of the cells; nothing for what is not there. */
export type Values = Names & Readonly<{ values: readonly string[] }>;

/** Those of one account and hour together, for they are in one place of Redis. */
export function groupsOf(places: readonly CellPlace[]): readonly Names[] {
  const groups = Map.groupBy(places, ({ accountId, hour }) => `${accountId} ${hour}`);
  return [...groups.values()].map((group) => {
    const [{ accountId, hour }] = group as [CellPlace]; // no group is empty
    const nodes = [...new Set(group.map(({ node }) => node))];
    return { accountId, hour, nodes, cells: hour === NO_HOUR ? [] : group };
  });
}

/** Reads by READ_CELLS, in one command. */
export async function readCells(
  client: Readonly<{ sluiceReadCells: Script }>,
  all: readonly Names[],
): Promise<readonly Values[]> {
  const words = all.flatMap((names) => [names.nodes.length, names.cells.length, ...fieldsOf(names)]);
  const values = textsIn(await client.sluiceReadCells(...keysOf(all), ...words));
  let at = 0;
  return all.map((names) => {
    const from = at;
    at += names.nodes.length + names.cells.length;
    return { ...names, values: values.slice(from, at) };
  });
}

/** Has Redis forget what was taken, by FORGET_CELLS, in one command. */
export async function forgetCells(
  client: Readonly<{ sluiceForgetCells: Script }>,
  all: readonly Values[],
): Promise<void> {
  const words = all.flatMap((read) => [
    read.nodes.length,
    read.cells.length,
    ...fieldsOf(read).flatMap((field, at) => [field, read.values[at] ?? '']),
  ]);
  await client.sluiceForgetCells(...keysOf(all), ...words);
}

function keysOf(all: readonly Names[]): readonly (string | number)[] {
  const keys = all.flatMap(({ accountId, hour }) => [spentKey(accountId), cellsKey(accountId, hour)]);
  return [keys.length, ...keys];
}

function fieldsOf({ nodes, cells }: Names): readonly string[] {
  return [...nodes, ...cells.map(cellField)];
}

export function spentIn({ accountId, nodes, values }: Values): readonly NodeSpent[] {
  return nodes.flatMap((node, at) => {
    const text = values[at] ?? '';
    if (text === '') return [];
    return [{ accountId, node, charged: counterAt(text, 0), refunded: counterAt(text, 1) }];
  });
}

export function cellsIn({ nodes, cells, values }: Values): readonly HourCell[] {
  return cells.flatMap((place, at) => {
    const text = values[nodes.length + at] ?? '';
    return text === '' ? [] : [cellFrom(place, text)];
  });
}

function cellFrom(place: CellPlace, text: string): HourCell {
  const counters = CELL_COUNTER_NAMES.map((name, at) => [name, counterAt(text, at)] as const);
  // The list has every counter of a cell, and nothing else.
  return { ...place, ...(Object.fromEntries(counters) as Record<CellCounter, number>) };
}

export function textsIn(reply: unknown): readonly string[] {
  if (!Array.isArray(reply)) throw new Error('Redis gave no list');
  return reply.map(String);
}
