/**
 * `pubsub-guarantees/sagas`: a business action over several services that ends exactly once, completed or compensated. The
 * store has an entry point of its own: `/sagas/firestore`.
 */
export {
  type CompensableStage,
  type CompensableStep,
  defineSaga,
  type OpenStage,
  type PivotStep,
  type RetriableStage,
  type RetriableStep,
  type Saga,
  type SagaDefinition,
  type SagaOptions,
  type StartOptions,
  type StepFunctions,
} from './definition.ts';
export { type Decision, decide, type SagaAnswer, type SagaEvent } from './decide.ts';
export type { Instance, SagaRef, SagaState, StepKind, StepPlan, StepState, StepStatus } from './instance.ts';
export { orchestrator, type OrchestratorOptions } from './orchestrator.ts';
export {
  type OutsideContext,
  type OutsideOptions,
  outsideParticipant,
  type OutsideStep,
  type Voided,
  voided,
} from './outside-participant.ts';
export {
  type Done,
  done,
  participant,
  type ParticipantOptions,
  type ParticipantStep,
  type Refused,
  refused,
  type SagaStep,
  type StepContext,
  type Undone,
  undone,
} from './participant.ts';
export type { FoundInstance, SagaStore } from './saga-store.ts';
export {
  type CallAnswer,
  type CallOptions,
  type SagaList,
  type SagaListOptions,
  type Sagas,
  sagas,
  type SagasOptions,
  type SettleOptions,
} from './sagas.ts';
export type { StepRecord, StepRecords, StepRef, StepRule } from './step-records.ts';
export type { TraceEnd, TraceHead, TraceRow, TraceStore } from './saga-traces.ts';
export {
  type CorrelatedHandler,
  type CorrelatedOptions,
  type Correlation,
  correlated,
  type Part,
} from './correlated.ts';
export {
  type OpenOptions,
  type OpenTrace,
  sagaTraces,
  type TraceNode,
  type Traces,
  type TraceView,
} from './traces.ts';
export { type SagaSweepOptions, sweepSagas } from './sweep.ts';
export type { SagaStepView, SagaView } from './view.ts';
