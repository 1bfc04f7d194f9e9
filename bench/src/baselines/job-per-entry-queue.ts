/** What the API and the worker of the job-per-entry baseline agree on. */
export const queueName = 'entries'
export const jobName = 'entry'
