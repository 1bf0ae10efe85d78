/**
 * Rasters as a provider of satellite scenes would answer them, made from the scene's number: the same each time. Pure but
 * for the pause.
 */
import { TransientError } from 'pubsub-guarantees';

/** Reflectances of each pixel, 0 to 1. */
export type Raster = Readonly<{ red: readonly number[]; nearInfrared: readonly number[] }>;

const PIXELS = 64;
/** The provider has this one at the second request only. */
const LATE_SCENE = 12;

/** Rejects with TransientError, as a provider does that has not finished. */
export async function acquire(scene: number, attempt: number, signal: AbortSignal): Promise<Raster> {
  await new Promise((resolve) => setTimeout(resolve, 2));
  signal.throwIfAborted();
  if (scene === LATE_SCENE && attempt === 1)
    throw new TransientError('SCENE_NOT_READY', `scene ${scene} is still being processed`);
  const band = (least: number): readonly number[] =>
    Array.from({ length: PIXELS }, (_, pixel) => least + ((scene * 31 + pixel * 17) % 100) / 400);
  return { red: band(0.05), nearInfrared: band(0.4) };
}

/** Mean of (infrared − red) / (infrared + red): how green the scene is, −1 to 1. */
export function meanVegetation({ red, nearInfrared }: Raster): number {
  const values = red.map((value, pixel) => {
    const infrared = nearInfrared[pixel] ?? 0;
    return (infrared - value) / (infrared + value);
  });
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
