import * as codes from '../codes'
import * as columns from '../columns'
import { Decoded } from '../draft'
import { METADATA as METADATA_FIELD } from '../errors'
import { fieldOf } from '../fields'
import { metadataBytesMax, metadataDepthMax } from '../limits'
import { Literal, literal } from '../literals'
import { findEnvironment } from '../loggers/words'
import { COMMON } from '../memory'
import { Metadata } from '../metadata'
import { hasAtMostCharacters } from '../records'
import { LONE } from '../strings'
import { Path } from '../surrogates'
import { Node, NODE_BYTES, REPEATED } from '../tape'
import { isFilled, Resource, Scope } from './record'
import { ATTRIBUTES_LEVEL, Rejection, SCOPE_ATTRIBUTES_LEVEL } from './values'

export const ATTRIBUTES: i32 = literal('attributes')
export const DROPPED: i32 = literal('dropped_attributes_count')
export const RESOURCE: i32 = literal('resource')
const RESOURCE_SCHEMA_URL: i32 = literal('resource_schema_url')
const RESOURCE_DROPPED: i32 = literal('resource_dropped_attributes_count')
export const SCOPE: i32 = literal('scope')
export const NAME: i32 = literal('name')
export const VERSION: i32 = literal('version')
const SCHEMA_URL: i32 = literal('schema_url')
export const SERVICE: i32 = literal('service')
const SERVICE_NAME: i32 = literal('service.name')
/** The current name and the earlier one. */
const ENVIRONMENT_NAME: i32 = literal('deployment.environment.name')
const EARLIER_ENVIRONMENT_NAME: i32 = literal('deployment.environment')

/**
 * What the records of a resource and a scope have in common. It is written once: the last members of their metadata, each with a comma after
 * it, are at `COMMON`, those of the resource first.
 */
export class Origin {
  /** Why all records are rejected; negative if they are not. */
  static code: i32 = -1
  static where: i32 = 0
  static service: i32 = 0
  static environment: i32 = 0
  static end: i32 = COMMON
  /** The JSON Pointer of half of a surrogate pair. Both are 0 if there is none. */
  static loneStart: i32 = 0
  static loneEnd: i32 = 0

  private static resourceCode: i32 = -1
  private static resourceWhere: i32 = 0
  private static resourceEnd: i32 = COMMON
  private static resourceLoneStart: i32 = 0
  private static resourceLoneEnd: i32 = 0

  /** Takes what was read of a resource. */
  static setResource(): void {
    Origin.service = 0
    Origin.environment = 0
    Origin.end = COMMON
    Origin.forgetLone()
    if (Rejection.code < 0) describeResource()
    Origin.resourceCode = Rejection.code
    Origin.resourceWhere = Rejection.where
    Origin.resourceEnd = Origin.end
    Origin.resourceLoneStart = Origin.loneStart
    Origin.resourceLoneEnd = Origin.loneEnd
  }

  /** Takes what was read of a scope, after its resource. */
  static setScope(): void {
    Origin.end = Origin.resourceEnd
    Origin.loneStart = Origin.resourceLoneStart
    Origin.loneEnd = Origin.resourceLoneEnd
    Origin.code = Origin.resourceCode
    Origin.where = Origin.resourceWhere
    if (Origin.code >= 0) return
    if (Rejection.code < 0) describeScope()
    Origin.code = Rejection.code
    Origin.where = Rejection.where
  }

  static get bytes(): i32 {
    return Origin.end - COMMON
  }

  /** Whether a path to half of a surrogate pair is known. */
  static get hasLone(): bool {
    return Origin.loneEnd !== 0
  }

  private static forgetLone(): void {
    Origin.loneStart = 0
    Origin.loneEnd = 0
  }

  /** Keeps the current path. */
  static keepLone(): void {
    if (Origin.hasLone) return
    Path.keep()
    Origin.loneStart = Path.start
    Origin.loneEnd = Path.end
  }

  /** Keeps the members that were written as metadata. */
  static keep(): void {
    const from = Metadata.start + 1
    const bytes = Metadata.end - from
    // With two braces, and without the last comma.
    if (Origin.bytes + bytes + 1 > metadataBytesMax) {
      Rejection.set(codes.TOO_LARGE, METADATA_FIELD)
      return
    }
    memory.copy(Origin.end, from, bytes)
    Origin.end += bytes
  }
}

/** Whether attributes are nested too deeply for their level in metadata. */
function isTooDeep(attributes: i32, level: i32): bool {
  if (attributes === 0 || level - 1 + Node.of(attributes).levels <= metadataDepthMax) return false
  Rejection.set(codes.TOO_DEEP, METADATA_FIELD)
  return true
}

function describeResource(): void {
  const attributes = Resource.attributes
  if (isTooDeep(attributes, ATTRIBUTES_LEVEL)) return
  if (attributes !== 0) takeResourceColumns(attributes)
  Metadata.begin()
  if (hasNames(attributes)) Metadata.addKnown(RESOURCE, attributes)
  if (isFilled(Resource.schemaUrl)) Metadata.addKnown(RESOURCE_SCHEMA_URL, Resource.schemaUrl)
  if (Resource.dropped !== 0) Metadata.addInteger(RESOURCE_DROPPED, Resource.dropped)
  Origin.keep()
  if (
    findLone(0, SERVICE, Origin.service) ||
    findLone(1, RESOURCE, attributes) ||
    findLone(1, RESOURCE_SCHEMA_URL, Resource.schemaUrl)
  )
    Origin.keepLone()
}

function describeScope(): void {
  const attributes = Scope.attributes
  if (isTooDeep(attributes, SCOPE_ATTRIBUTES_LEVEL)) return
  const isNamed = isFilled(Scope.name)
  const isVersioned = isFilled(Scope.version)
  const hasAttributes = hasNames(attributes)
  const hasSchema = isFilled(Scope.schemaUrl)
  if (!isNamed && !isVersioned && !hasAttributes && !hasSchema && Scope.dropped === 0) return
  Metadata.begin()
  Metadata.openObject(SCOPE)
  if (isNamed) Metadata.addKnown(NAME, Scope.name)
  if (isVersioned) Metadata.addKnown(VERSION, Scope.version)
  if (hasAttributes) Metadata.addKnown(ATTRIBUTES, attributes)
  if (hasSchema) Metadata.addKnown(SCHEMA_URL, Scope.schemaUrl)
  if (Scope.dropped !== 0) Metadata.addInteger(DROPPED, Scope.dropped)
  Metadata.closeObject()
  Origin.keep()
  if (findLoneInScope(NAME, Scope.name) || findLoneInScope(VERSION, Scope.version)) Origin.keepLone()
  else if (findLoneInScope(ATTRIBUTES, attributes) || findLoneInScope(SCHEMA_URL, Scope.schemaUrl))
    Origin.keepLone()
}

function findLoneInScope(name: i32, address: i32): bool {
  if (address === 0 || !Node.of(address).has(LONE)) return false
  Path.begin()
  Path.addMetadata()
  Path.addKnown(SCOPE)
  Path.addKnown(name)
  return Path.find(address)
}

/**
 * Finds half of a surrogate pair in a value, and makes its path.
 *
 * @param level 1 for a member of metadata, 0 for a field of the entry
 * @param name a literal
 */
export function findLone(level: i32, name: i32, address: i32): bool {
  if (address === 0 || !Node.of(address).has(LONE)) return false
  Path.begin()
  if (level > 0) Path.addMetadata()
  Path.addKnown(name)
  return Path.find(address)
}

/** Whether an object has a name that was not taken out. @param object may be 0 */
export function hasNames(object: i32): bool {
  if (object === 0) return false
  const end = Node.of(object).next
  for (let address = object + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next)
    if (!Node.of(address).has(REPEATED)) return true
  return false
}

/**
 * Takes an attribute out that becomes a column. An attribute that is not a string, or is longer than the column allows, stays where it is.
 *
 * @returns its node; 0 if it stays
 */
export function takeText(name: Node, column: i32): i32 {
  const value = Node.of(name.next)
  if (!value.isString || value.bytes === 0 || !hasAtMostCharacters(value, fieldOf(column).charactersMax))
    return 0
  name.head |= REPEATED
  return name.next
}

function takeResourceColumns(attributes: i32): void {
  let current = 0
  let earlier = 0
  const end = Node.of(attributes).next
  for (let address = attributes + NODE_BYTES; address < end; address = Node.of(address + NODE_BYTES).next) {
    const name = Node.of(address)
    if (name.has(REPEATED)) continue
    if (isLiteral(name, SERVICE_NAME)) Origin.service = takeText(name, columns.service)
    else if (isLiteral(name, ENVIRONMENT_NAME)) current = address
    else if (isLiteral(name, EARLIER_ENVIRONMENT_NAME)) earlier = address
  }
  Origin.environment = takeEnvironment(current)
  if (Origin.environment === 0) Origin.environment = takeEnvironment(earlier)
}

/** Finds the environment. Takes the attribute out if it says no more than the column. @param address a name; 0 for none */
function takeEnvironment(address: i32): i32 {
  if (address === 0) return 0
  const name = Node.of(address)
  const value = Node.of(name.next)
  if (!value.isString) return 0
  Decoded.read(value)
  const start = Decoded.start
  const bytes = Decoded.end - start
  const choice = findEnvironment(start, start + bytes)
  if (choice === 0) return 0
  const known = Node.of(choice)
  if (known.bytes === bytes && memory.compare(known.start, start, bytes) === 0) name.head |= REPEATED
  return choice
}

function isLiteral(name: Node, known: i32): bool {
  return Literal.of(known).isName(name)
}
