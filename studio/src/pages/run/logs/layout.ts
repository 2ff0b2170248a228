/** Which rows of a long list are on the screen. Pure. */

/** Where each row begins, in rows of the screen, and at the end how many there are: `[0, 1, 3]` is a row and a double one. */
export function placeRows(lengths: readonly number[], columns: number): Float64Array {
  const places = new Float64Array(lengths.length + 1);
  for (let index = 0; index < lengths.length; index += 1) {
    const rows = columns > 0 ? Math.max(1, Math.ceil(lengths[index]! / columns)) : 1;
    places[index + 1] = places[index]! + rows;
  }
  return places;
}

/** The first row that ends after a place. */
export function findRow(places: Float64Array, place: number): number {
  let low = 0;
  let high = Math.max(0, places.length - 2);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle + 1]! > place) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The rows between two places, with some before and after, so that scrolling shows no gaps. */
export function chooseRows(places: Float64Array, from: number, to: number, spare: number): { first: number; last: number } {
  const count = places.length - 1;
  if (count <= 0) return { first: 0, last: 0 };
  return {
    first: Math.max(0, findRow(places, from) - spare),
    last: Math.min(count, findRow(places, to) + 1 + spare),
  };
}
